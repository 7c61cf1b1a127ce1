package hostd

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A guestRecord is what a restarted daemon needs to know of a guest.
type guestRecord struct {
	Name     string     `json:"name"`
	Number   uint16     `json:"number"`
	Path     string     `json:"path"` // of its network namespace
	Inode    uint64     `json:"inode"`
	Nonlocal string     `json:"nonlocal_bind"`      // the sysctl before us
	Closed   bool       `json:"closed,omitempty"`   // its loopback had no IPv6
	Resolver string     `json:"resolver,omitempty"` // the resolv.conf that we wrote
	Since    time.Time  `json:"since"`
	Serve    string     `json:"serve,omitempty"`  // name that its wildcard listeners serve
	Address  netip.Addr `json:"address,omitzero"` // of that name
}

// guests are the network namespaces for which this host is the edge. The loop owns it.
type guests struct {
	d      *daemon
	wanted []*guestRecord    // in the order in which they came; those that are up among them
	up     map[uint16]*guest // by number
	last   uint16            // number that was given
	ready  bool              // the edge has what guests need
	swept  bool              // what it had of others is gone

	mu     sync.Mutex
	called map[uint16]string // names of those that are up, for every goroutine
}

const guestsFile = "guests.json"

type savedGuests struct {
	BootID string         `json:"boot_id"`
	Netns  uint64         `json:"netns"`
	Last   uint16         `json:"last"`
	Guests []*guestRecord `json:"guests"`
}

// newGuests reads those of a daemon before this one, in this namespace since this boot. Their sockets are waited
// for before anything that the edge lets in is withdrawn.
func newGuests(d *daemon) *guests {
	g := &guests{d: d, up: map[uint16]*guest{}, called: map[uint16]string{}}
	var saved savedGuests
	if d.store.read(guestsFile, &saved) && saved.BootID == d.bootID && saved.Netns == d.netns {
		g.wanted, g.last = saved.Guests, saved.Last
	}
	for _, r := range g.wanted {
		d.serving.awaited[r.Number] = true
	}
	return g
}

func (g *guests) save() {
	err := g.d.store.writeJSON(guestsFile, savedGuests{g.d.bootID, g.d.netns, g.last, g.wanted})
	if err != nil {
		g.d.log.Warn("a restart will not know the guests", "error", err)
	}
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

// evict ends flows of guests that are gone, after what the loop does now.
func (g *guests) evict(gone func(uint16) bool) {
	g.d.held = append(g.d.held, func() { g.d.sessions.evict(gone) })
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
	if err != nil {
		x.lower()
		return err
	}
	g.up[r.Number] = x
	g.call(r.Number, r.Name)
	g.d.log.Info("guest", "name", r.Name, "number", r.Number, "namespace", r.Path, "identity", x.identity)
	return nil
}

// guestIdentity is the low half of a guest's stable address: a guest of the same name again has the same.
func guestIdentity(host uint64, name string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "scaffold guest 1\x00%016x\x00%s", host, name))
	return binary.BigEndian.Uint64(sum[:8])>>1 | sid.ReservedSuffixes
}

// add takes a new guest.
func (g *guests) add(name, path, serve string, address netip.Addr) (*guest, error) {
	if g.d.edge == nil || g.d.home == nil || g.d.preferred() == nil {
		return nil, refusedf("this host is in no network yet: `scaffold host status` says why")
	}
	ns, err := openNamespace(path)
	if err != nil {
		if errors.Is(err, errNoNamespace) {
			return nil, notFound("%v", err)
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

// prefer tells the edge where guests' new flows leave, and guests how large packets may be.
func (g *guests) prefer() {
	if g.d.edge == nil || len(g.wanted) == 0 && len(g.up) == 0 {
		return
	}
	index := 0
	if p := g.d.preferred(); p != nil {
		index = p.Index
	}
	if err := g.d.edge.PreferUplink(index); err != nil {
		g.d.log.Error("guests' flows do not follow the uplink", "error", err)
	}
	for _, x := range g.up {
		if err := x.fit(g.mtu()); err != nil {
			g.d.log.Warn("the MTU of a guest", "guest", x.Name, "error", err)
		}
	}
}

// mtu is what every uplink takes: a flow may move to any.
func (g *guests) mtu() int {
	least := 0
	for i := range g.d.places {
		if u := g.d.uplink(g.d.places[i].Uplink); u != nil && u.mtu > 0 && (least == 0 || u.mtu < least) {
			least = u.mtu
		}
	}
	return least
}

func (g *guests) call(number uint16, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.called[number] = name
	if name == "" {
		delete(g.called, number)
	}
}

// name is what a guest is called, "" for the host itself. For every goroutine.
func (g *guests) name(number uint16) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.called[number]
}

// where says in which guest something is, for people.
func (g *guests) where(number uint16) string {
	if x := g.up[number]; x != nil {
		return " in guest " + x.Name
	}
	return ""
}

// at is the address and the namespace of a guest, or of the host itself.
func (g *guests) at(number uint16) (netip.Addr, namespace) {
	if x := g.up[number]; x != nil {
		return x.identity, x.ns
	}
	return g.d.home.Space.Identity(g.d.identity), namespace{}
}

// goneEvery is how often it is looked whether guests' namespaces are still where they were.
const goneEvery = 500 * time.Millisecond

// watch removes guests whose namespace is gone: its name was removed, or the process that it is known by ended.
func (g *guests) watch() {
	tick := time.NewTicker(goneEvery)
	defer tick.Stop()
	for {
		select {
		case <-g.d.ctx.Done():
			return
		case <-tick.C:
			g.d.post(g.sweep)
		}
	}
}

func (g *guests) sweep() {
	for _, x := range g.up {
		if inode, err := inodeOf(x.Path); err != nil || inode != x.Inode {
			g.d.log.Info("a guest's namespace is gone", "guest", x.Name, "namespace", x.Path)
			g.drop(x.guestRecord)
		}
	}
}

// evict ends the flows of guests: clients of what they served turn to others at once, and what their programs began
// is no flow of this host any more.
func (s *sessions) evict(gone func(guest uint16) bool) {
	if s.engine == nil {
		return
	}
	of := func(f host.Flow) bool { return gone(f.Tuple.Guest) }
	s.shed(wire.ProcessDied, of)
	s.settle(time.Now())
	var steps []host.Step
	var ended []host.Tuple
	s.edge.Walk(func(f host.Flow) bool { //nolint:errcheck // what cannot be read goes by age
		if of(f) && !s.buried(f.Tuple) {
			steps = append(steps, host.Step{Verb: host.Forget, Flow: f.Tuple})
		}
		if of(f) && f.Proto == sid.TCP {
			ended = append(ended, f.Tuple)
		}
		return true
	})
	s.kernel.end(ended)
	s.edge.Steer(steps) //nolint:errcheck // what is gone is forgotten
}

// resolverOf is where `ip netns` keeps the resolv.conf of a namespace that it made; "" for others.
func resolverOf(path string) string {
	dir, name := filepath.Split(filepath.Clean(path))
	if dir == "/run/netns/" || dir == "/var/run/netns/" {
		return filepath.Join("/etc/netns", name, "resolv.conf")
	}
	return ""
}
