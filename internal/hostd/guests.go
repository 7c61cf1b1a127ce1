package hostd

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/bpf/host"
)

// guests are the network namespaces for which this host is the edge. The loop owns it.
type guests struct {
	d      *daemon
	wanted []*guestRecord    // in the order in which they came; those that are up among them
	up     map[uint16]*guest // by number
	last   uint16            // number that was given
	ready  bool              // the edge has what guests need
	swept  bool              // what it had of others is gone

	tethers *tethers // nil before the first guest

	mu     sync.Mutex
	called map[uint16]string // names of those that are up, for every goroutine
}

// raise sets up those that are wanted and not up, once the host is in a network.
func (g *guests) raise() {
	if g.d.edge == nil || g.d.home == nil || g.d.preferred() == nil {
		return
	}
	g.prefer()
	if len(g.wanted) > 0 && !g.ready {
		g.prepare(g.d.edge)
		return
	}
	for _, r := range slices.Clone(g.wanted) {
		if g.up[r.Number] != nil {
			continue
		}
		if err := g.raiseOne(r); err != nil {
			g.d.log.Warn("a guest is no more", "guest", r.Name, "error", err)
			g.drop(r)
		}
	}
	if g.swept {
		return
	}
	g.swept = true
	if err := g.d.edge.SweepGuests(); err != nil {
		g.d.log.Warn("forget guests that are gone", "error", err)
	}
	g.evict(func(n uint16) bool { return n != 0 && g.up[n] == nil })
}

// prepare loads, beside the loop, what takes long, and then raises those that are wanted.
func (g *guests) prepare(edge *host.Edge) {
	go func() {
		err := edge.ReadyForGuests()
		g.d.post(func() {
			if err != nil {
				g.d.log.Error("no guests here", "error", err)
			}
			g.ready = true
			g.raise()
		})
	}()
}

// raiseOne sets up a guest, or takes over what a daemon before this one has set up.
func (g *guests) raiseOne(r *guestRecord) error {
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
	x := &guest{guestRecord: r, d: g.d, ns: ns, identity: g.d.home.Space.Identity(guestIdentity(g.d.identity, r.Name))}
	err = g.d.edge.PreferUplink(g.d.preferred().Index)
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
	g.d.log.Info("guest", "name", r.Name, "number", r.Number, "namespace", r.Path, "identity", x.identity)
	return nil
}

// add takes a new guest.
func (g *guests) add(name, path, serve string, address netip.Addr) (*guest, error) {
	if g.d.edge == nil || g.d.home == nil || g.d.preferred() == nil {
		return nil, refusedf("this host is in no network yet: `scaffold host status` says why")
	}
	ns, err := openNamespace(path)
	if err != nil {
		switch {
		case errors.Is(err, errNoNamespace):
			return nil, notFound("%v", err)
		case errors.Is(err, os.ErrPermission):
			return nil, connect.NewError(connect.CodePermissionDenied, err)
		}
		return nil, invalid("%v", err)
	}
	inode, err := ns.inode()
	ns.close()
	if err != nil {
		return nil, invalid("%v", err)
	}
	if err := g.free(name, inode); err != nil {
		return nil, err
	}
	if len(g.wanted) >= host.MaxGuests {
		return nil, refusedf("this host has %d guests, and no more numbers", len(g.wanted))
	}
	r := &guestRecord{Name: name, Number: g.number(), Path: path, Inode: inode, Since: time.Now(), Serve: serve, Address: address}
	if err := g.raiseOne(r); err != nil {
		return nil, refusedf("guest %s: %v", name, err)
	}
	g.wanted = append(g.wanted, r)
	g.save()
	return g.up[r.Number], nil
}

// free says who has the name or the namespace.
func (g *guests) free(name string, inode uint64) error {
	if inode == g.d.netns {
		return refusedf("that is the host's own namespace: programs there need no guest")
	}
	for _, r := range g.wanted {
		switch {
		case r.Name == name && r.Inode == inode:
			return exists("guest %s is there already", name)
		case r.Name == name:
			return exists("there is a guest %s already, of another namespace (%s): take another name, or remove it first", name, r.Path)
		case r.Inode == inode:
			return exists("that namespace is guest %s already", r.Name)
		}
	}
	return nil
}

// number is one that was not given for as long as possible: flows of a guest that is gone may still be known.
func (g *guests) number() uint16 {
	for {
		g.last = g.last%host.MaxGuests + 1
		if !slices.ContainsFunc(g.wanted, func(r *guestRecord) bool { return r.Number == g.last }) {
			return g.last
		}
	}
}

// remove ends a guest: what it serves is withdrawn, its flows are ended, what was set up in it is taken away.
func (g *guests) remove(name string) error {
	i := slices.IndexFunc(g.wanted, func(r *guestRecord) bool { return r.Name == name })
	if i < 0 {
		return notFound("there is no guest %q on host %s", name, g.d.cfg.Name)
	}
	g.drop(g.wanted[i])
	return nil
}

func (g *guests) drop(r *guestRecord) {
	if x := g.up[r.Number]; x != nil {
		g.lower(x)
	} else {
		removeResolver(r)
		removeLink(r)
		g.d.serving.replace(r.Number, nil)
		g.evict(func(n uint16) bool { return n == r.Number })
	}
	g.wanted = slices.DeleteFunc(g.wanted, func(o *guestRecord) bool { return o == r })
	g.save()
}

// lower withdraws what the guest serves before its flows are ended: none comes back.
func (g *guests) lower(x *guest) {
	x.stopReading()
	g.d.serving.replace(x.Number, nil)
	g.d.serving.flush()
	g.d.sessions.evict(func(n uint16) bool { return n == x.Number })
	x.lower()
	delete(g.up, x.Number)
	g.call(x.Number, "")
	g.d.log.Info("guest removed", "name", x.Name, "namespace", x.Path)
}

// lowerAll is the host's goodbye. Those that are there when it comes back are its guests again.
func (g *guests) lowerAll() {
	for _, x := range g.up {
		g.lower(x)
	}
}

// letGo leaves all in place, for the next daemon.
func (g *guests) letGo() {
	for _, x := range g.up {
		x.letGo()
	}
	clear(g.up)
}
