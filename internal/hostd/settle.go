package hostd

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/sid"
)

// oldLocatorGrace is how long packets to a locator that the host had are still taken: those on their
// way when it changed.
const oldLocatorGrace = 60 * time.Second

// join says who and where this host is. It runs in the control goroutine.
func (d *daemon) join(ctx context.Context, a *attachment) *apiv1.Join {
	j := &apiv1.Join{
		Name: d.cfg.Name, Key: []byte(d.key.Public().(ed25519.PublicKey)), BootId: d.bootID, Version: obs.Version(),
		Attachment: a.Attachment, Identity: identityOf(d.key), Netns: strconv.FormatUint(d.netns, 10),
	}
	d.call(ctx, func() {
		if d.place != nil {
			j.Locator = d.place.Locator.String()
		}
	})
	return j
}

// joined takes the place that the controller gave and begins to report.
func (d *daemon) joined(j *apiv1.Joined, a *attachment, out chan *apiv1.HostReport) {
	p, err := d.placeOf(j, a)
	if err == nil {
		err = d.settle(p)
	}
	if err != nil {
		d.log.Error("cannot take the place that the controller gave", "locator", j.Locator, "error", err)
		close(out)
		return
	}
	d.log.Info("joined the network", "network", j.Network, "locator", p.Locator, "router", a.Router, "port", a.Port)
	d.control.out = out
	d.serving.newSession()
}

// placeOf reads Joined.
func (d *daemon) placeOf(j *apiv1.Joined, a *attachment) (*place, error) {
	space, err := spaceOf(j.Space)
	if err != nil {
		return nil, err
	}
	locator, err := netip.ParsePrefix(j.Locator)
	if err != nil {
		return nil, fmt.Errorf("locator %q: want a prefix such as fd5d:0:1:101::/64", j.Locator)
	}
	if locator.Bits() != sid.LocatorBits || !space.Owns(sid.LocatorOf(locator.Addr())) {
		return nil, fmt.Errorf("locator %v: want a /%d in %v", locator, sid.LocatorBits, space.AS)
	}
	return &place{
		BootID: d.bootID, Netns: d.netns, Network: j.Network, Domain: j.Domain, Space: space,
		Locator: sid.LocatorOf(locator.Addr()), Uplink: a.uplink, Router: a.router, Routers: j.Routers,
		Nonlocal: d.nonlocal, Neighbour: &neighbourAt{a.Router, a.Port},
	}, nil
}

// spaceOf reads the address plan; an empty one is the default.
func spaceOf(s *apiv1.Space) (sid.Space, error) {
	if s == nil || s.Services == "" && s.As == "" && s.Identities == "" {
		return sid.DefaultSpace(), nil
	}
	var space sid.Space
	var errs [3]error
	space.Services, errs[0] = netip.ParsePrefix(s.Services)
	space.AS, errs[1] = netip.ParsePrefix(s.As)
	space.Identities, errs[2] = netip.ParsePrefix(s.Identities)
	if err := errors.Join(errs[:]...); err != nil {
		return space, fmt.Errorf("the network's address plan: %w", err)
	}
	return space, space.Validate()
}

// settle makes the host live at the place: the edge first, then what sends packets through it, then
// the sockets that are there.
func (d *daemon) settle(p *place) error {
	u := d.uplink(p.Uplink)
	if u == nil || u.index == 0 {
		return fmt.Errorf("uplink %s is not there", p.Uplink)
	}
	if err := d.openEdge(p); err != nil {
		return err
	}
	if err := d.attachEdge(p, u); err != nil {
		return err
	}
	identity := p.Space.Identity(identityOf(d.key))
	if err := d.kernel.want(itemsFor(p, identity, u.index)); err != nil {
		return fmt.Errorf("set up routes and addresses: %w", err)
	}
	d.place = p
	d.names.setNetwork(p.Domain, p.Space)
	if err := d.store.savePlace(p); err != nil {
		d.log.Warn("a restart will not know the host's place", "error", err)
	}
	return d.watchSockets(p.Space)
}

// openEdge loads or adopts the edge; one for another address plan is replaced.
func (d *daemon) openEdge(p *place) error {
	if d.edge != nil && d.place != nil && d.place.Space == p.Space {
		return nil
	}
	if d.edge != nil {
		d.flows.stop()
		d.edge.Close(false)
		d.edge = nil
	}
	edge, err := host.Open(host.Config{Space: p.Space, Identity: p.Space.Identity(identityOf(d.key)), Pin: d.pin()})
	if err != nil {
		return err
	}
	if d.flows, err = d.keep(edge); err != nil {
		edge.Close(true)
		return err
	}
	d.edge = edge
	d.sessions.edgeOpened(edge)
	go d.readEdge(edge)
	return nil
}

// attachEdge puts the edge on the uplink and tells it the locator; the one from before is still
// accepted for a while.
func (d *daemon) attachEdge(p *place, u *uplink) error {
	if err := d.edge.AcceptLocator(p.Locator, true); err != nil {
		return err
	}
	if err := d.edge.SetUplink(u.index, host.Uplink{Locator: p.Locator, MTU: uint16(min(u.mtu, 1<<16-1))}); err != nil {
		return err
	}
	if err := d.edge.Attach(u.index); err != nil {
		return err
	}
	if old := d.place; old != nil && old.Locator != p.Locator {
		time.AfterFunc(oldLocatorGrace, func() { d.post(func() { d.dropLocator(old.Locator) }) })
	}
	return nil
}

func (d *daemon) dropLocator(l sid.Locator) {
	if d.edge != nil && d.place.Locator != l {
		d.edge.AcceptLocator(l, false)
	}
}

// readEdge brings the edge's events to the loop until the edge is closed.
func (d *daemon) readEdge(edge *host.Edge) {
	for {
		e, err := edge.ReadEvent()
		if err != nil {
			return
		}
		if e.Kind == host.Refused {
			d.post(func() { d.refused(e) })
		} else {
			d.post(func() { d.sessions.event(e) })
		}
	}
}

// refused feeds the policy of refusals, which asks again or tells the socket.
func (d *daemon) refused(e host.Event) {
	now := time.Now()
	d.refusals.Handle(now, e)
	d.refusals.Expire(now)
	d.answerRefusals()
}

func (d *daemon) answerRefusals() {
	for _, a := range d.refusals.Drain() {
		var err error
		if a.Retry {
			err = d.edge.Retry(a.Event)
		} else {
			err = d.edge.InjectRefusal(a.Event)
		}
		if err != nil {
			d.log.Debug("refusal", "flow", a.Event.ID, "error", err)
		}
	}
}
