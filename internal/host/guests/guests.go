package guests

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
)

// Guests are the network namespaces for which this host is the edge. The loop owns it.
type Guests struct {
	Config
	ctx    context.Context
	wanted []*record         // in the order in which they came; those that are up among them
	up     map[uint16]*guest // by number
	last   uint16            // number that was given
	ready  bool              // the edge has what guests need
	swept  bool              // what it had of others is gone

	tethers *tethers // nil before the first guest

	mu     sync.Mutex
	called map[uint16]string // names of those that are up, for every goroutine
}

// space is the address plan of the network that the host is in.
func (g *Guests) space() sid.Space {
	space, _ := g.Host.Space()
	return space
}

// reached reports whether there is something for a guest to be reached by.
func (g *Guests) reached() bool {
	_, in := g.Host.Space()
	_, linked := g.Host.Uplink()
	return g.Host.Edge() != nil && in && linked
}

// Raise sets up those that are wanted and not up, once the host is in a network.
func (g *Guests) Raise() {
	if !g.reached() {
		return
	}
	g.prefer()
	if len(g.wanted) > 0 && !g.ready {
		g.prepare(g.Host.Edge())
		return
	}
	for _, r := range slices.Clone(g.wanted) {
		if g.up[r.Number] != nil {
			continue
		}
		if err := g.raiseOne(r); err != nil {
			g.Log.Warn("a guest is no more", "guest", r.Name, "error", err)
			g.drop(r)
		}
	}
	if g.swept {
		return
	}
	g.swept = true
	if err := g.Host.Edge().SweepGuests(); err != nil {
		g.Log.Warn("forget guests that are gone", "error", err)
	}
	g.evict(func(n uint16) bool { return n != 0 && g.up[n] == nil })
}

// prepare loads, beside the loop, what takes long, and then raises those that are wanted.
func (g *Guests) prepare(edge *host.Edge) {
	go func() {
		err := edge.ReadyForGuests()
		g.Post(func() {
			if err != nil {
				g.Log.Error("no guests here", "error", err)
			}
			g.ready = true
			g.Raise()
		})
	}()
}

// raiseOne sets up a guest, or takes over what a daemon before this one has set up.
func (g *Guests) raiseOne(r *record) error {
	ns, err := openNamespace(r.Path)
	if err == nil {
		var inode uint64
		if inode, err = ns.inode(); err == nil && inode != r.Inode {
			err = fmt.Errorf("%w at %s: another one is there now", errNoNamespace, r.Path)
		}
	}
	if err != nil {
		ns.close()
		return err
	}
	x := &guest{record: r, in: g, ns: ns, identity: g.space().Identity(guestIdentity(g.Identity, r.Name))}
	index, _ := g.Host.Uplink()
	err = g.Host.Edge().PreferUplink(index)
	if err == nil {
		err = x.raise()
	}
	if err == nil {
		err = g.tether(x)
	}
	if err != nil {
		x.lower()
		return err
	}
	g.up[r.Number] = x
	g.call(r.Number, r.Name)
	g.Log.Info("guest", "name", r.Name, "number", r.Number, "namespace", r.Path, "identity", x.identity)
	return nil
}

// Add takes a new guest.
func (g *Guests) Add(name, path, serve string, address netip.Addr) (*apiv1.Guest, error) {
	if !g.reached() {
		return nil, refused(Unready, "this host is in no network yet: `scaffold host status` says why")
	}
	ns, err := openNamespace(path)
	if err != nil {
		switch {
		case errors.Is(err, errNoNamespace):
			return nil, refused(Missing, "%v", err)
		case errors.Is(err, os.ErrPermission):
			return nil, refused(Denied, "%w", err)
		}
		return nil, refused(Invalid, "%v", err)
	}
	inode, err := ns.inode()
	ns.close()
	if err != nil {
		return nil, refused(Invalid, "%v", err)
	}
	if err := g.free(name, inode); err != nil {
		return nil, err
	}
	if len(g.wanted) >= host.MaxGuests {
		return nil, refused(Unready, "this host has %d guests, and no more numbers", len(g.wanted))
	}
	r := &record{Name: name, Number: g.number(), Path: path, Inode: inode, Since: time.Now(), Serve: serve, Address: address}
	if err := g.raiseOne(r); err != nil {
		return nil, refused(Unready, "guest %s: %v", name, err)
	}
	g.wanted = append(g.wanted, r)
	g.save()
	return g.up[r.Number].show(), nil
}

// free says who has the name or the namespace.
func (g *Guests) free(name string, inode uint64) error {
	if inode == g.Netns {
		return refused(Unready, "that is the host's own namespace: programs there need no guest")
	}
	for _, r := range g.wanted {
		switch {
		case r.Name == name && r.Inode == inode:
			return refused(Taken, "guest %s is there already", name)
		case r.Name == name:
			return refused(Taken, "there is a guest %s already, of another namespace (%s): take another name, or remove it first", name, r.Path)
		case r.Inode == inode:
			return refused(Taken, "that namespace is guest %s already", r.Name)
		}
	}
	return nil
}

// number is one that was not given for as long as possible: flows of a guest that is gone may still be known.
func (g *Guests) number() uint16 {
	for {
		g.last = g.last%host.MaxGuests + 1
		if !slices.ContainsFunc(g.wanted, func(r *record) bool { return r.Number == g.last }) {
			return g.last
		}
	}
}

// Remove ends a guest: what it serves is withdrawn, its flows are ended, what was set up in it is taken away.
func (g *Guests) Remove(name string) error {
	i := slices.IndexFunc(g.wanted, func(r *record) bool { return r.Name == name })
	if i < 0 {
		return refused(Missing, "there is no guest %q on host %s", name, g.Name)
	}
	g.drop(g.wanted[i])
	return nil
}

func (g *Guests) drop(r *record) {
	if x := g.up[r.Number]; x != nil {
		g.lower(x)
	} else {
		removeResolver(r)
		removeLink(r)
		g.Registry.Forget(r.Number)
		g.evict(func(n uint16) bool { return n == r.Number })
	}
	g.wanted = slices.DeleteFunc(g.wanted, func(o *record) bool { return o == r })
	g.save()
}

// lower withdraws what the guest serves before its flows are ended: none comes back.
func (g *Guests) lower(x *guest) {
	x.stopReading()
	g.Registry.Forget(x.Number)
	g.Registry.Flush()
	g.Flows.Evict(func(n uint16) bool { return n == x.Number })
	x.lower()
	delete(g.up, x.Number)
	g.call(x.Number, "")
	g.Log.Info("guest removed", "name", x.Name, "namespace", x.Path)
}

// LowerAll is the host's goodbye. Those that are there when it comes back are its guests again.
func (g *Guests) LowerAll() {
	for _, x := range g.up {
		g.lower(x)
	}
}

// LetGo leaves all in place, for the next daemon.
func (g *Guests) LetGo() {
	for _, x := range g.up {
		x.letGo()
	}
	clear(g.up)
}

// evict ends flows of guests that are gone, after what the loop does now.
func (g *Guests) evict(gone func(uint16) bool) {
	g.Later(func() { g.Flows.Evict(gone) })
}
