package hostd

import (
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/host/joining"
	"scaffold.dev/scaffold/internal/host/places"
	"scaffold.dev/scaffold/internal/host/uplinks"
	"scaffold.dev/scaffold/sid"
)

// newPlaces are where the host is, and what follows from that for the other sides. The flows, which ask for places
// themselves, come later.
func newPlaces(d *daemon) *places.Places {
	return places.New(places.Config{
		Log: d.log, Identity: d.identity, Post: d.post, Files: d.store, Keys: &d.keys, Member: d.member,
		Edges: edges{d}, Uplinks: interfaces{d}, Settled: d.settled,
	})
}

// findUplinks makes the rooms of how the host gets to its places, once it is known which uplinks it has.
func (d *daemon) findUplinks() {
	d.places.Order, d.places.Beside = d.cfg.Uplinks, d.cfg.beside
	cfg := joining.Config{
		Log: d.log, Name: d.cfg.Name, BootID: d.bootID, Netns: d.netns, Identity: d.identity, Keys: &d.keys, Direct: d.controllers != nil,
		Switches: func() (nonlocal, earlyDemux string) { return d.nonlocal, d.demux }, Post: d.post, Call: d.call, Controller: d.control, Places: d.places,
	}
	if d.controllers != nil {
		cfg.First, _ = d.controllers.Next()
	}
	d.joining = joining.New(cfg)
	d.uplinks = uplinks.New(d.ctx, uplinks.Config{
		Log: d.log, Host: d.cfg.Name, Names: d.cfg.Uplinks, Direct: d.controllers != nil, Post: d.post, Call: d.call, Tell: d.joining,
	})
	d.joining.Uplinks = d.uplinks
}

// settled serves at the places.
func (d *daemon) settled(h *places.Home) error {
	d.names.SetNetwork(h.Domain, h.Space)
	if err := d.watchSockets(h.Space); err != nil {
		return err
	}
	d.guests.Raise()
	return nil
}

// joined takes the places that the controller gave and begins to report.
func (d *daemon) joined(j *apiv1.Joined, bids []*joining.Bid, out *hostSession) {
	if err := d.joining.Joined(j, bids); err != nil {
		d.log.Error("cannot take the place that the controller gave", "locator", j.Locator, "error", err)
		out.Finish()
		return
	}
	d.renewed(j.Credential)
	d.places.Revoked(j.Revoked, true)
	if j.Trust == "open" {
		d.log.Warn("the network is open: anybody who reaches it may join it (trust: open)", "network", j.Network)
	}
	d.control.out, d.challenge = out, j.Challenge
	d.serving.NewSession()
	d.joining.Attend()
}

// edges open the edge for the places, and tell all who have to do with it.
type edges struct{ d *daemon }

// Open loads or adopts it.
func (e edges) Open(space sid.Space, device string) (*host.Edge, error) {
	d := e.d
	edge, err := host.Open(host.Config{Space: space, Identity: space.Identity(d.identity), Pin: d.pin()})
	if err != nil {
		return nil, err
	}
	if d.flows, err = d.sweep(edge); err != nil {
		edge.Close(true)
		return nil, err
	}
	d.edge = edge
	d.serving.EdgeOpened(edge)
	d.sessions.EdgeOpened(edge)
	d.sessions.BindTo(device)
	go d.readEdge(edge)
	return edge, nil
}

// Close ends it, with its guests and flows: the next one has another address plan.
func (e edges) Close() {
	e.d.guests.LowerAll()
	e.d.flows.Stop()
	e.d.edge.Close(false)
	e.d.edge = nil
}

// interfaces are the uplinks as places know them.
type interfaces struct{ d *daemon }

func (i interfaces) Find(name string) (index, mtu int, ok bool) {
	u := i.d.uplinks.Named(name)
	if u == nil {
		return 0, 0, false
	}
	return u.Index, u.MTU, true
}

func (i interfaces) Resume(name string, index int, router netip.Addr, before *apiv1.Attachment) (int, bool) {
	return i.d.uplinks.Resume(name, index, router, before)
}
