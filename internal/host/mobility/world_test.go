package mobility

import (
	"context"
	"crypto/ed25519"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A fakeNet carries messages between the sessions of fake hosts: what is sent lies in the queue until run.
type fakeNet struct {
	t     *testing.T
	at    map[sid.Locator]*fakeHost
	queue []fakePacket
	tap   func(fakePacket) // sees what is delivered
	to    *fakeHost        // where service addresses lead
}

// toInstance has messages to a service's address find the host, as service routers would.
func (n *fakeNet) toInstance(h *fakeHost) { n.to = h }

type fakePacket struct {
	from, to netip.Addr
	payload  []byte
}

// A fakeHost is the sessions of a daemon, an edge that does nothing but remember, and what else sessions ask.
type fakeHost struct {
	*Sessions
	edge    *fakeEdge
	tcp     *fakeTCP
	inbox   chan func()
	crowd   uint32 // how many flows it had when they were counted
	at      sid.Locator
	cut     bool // answers no PROBE
	where   *fakePlaces
	serves  *fakeServing
	answers *fakeController
}

// A fakeEdge has flows and does steps to them as abi.h has it. Its calls may come from several goroutines, as those of an edge.
type fakeEdge struct {
	net      *fakeNet
	mu       sync.Mutex // of flows: the comparison of flows reads them beside the loop
	flows    map[host.Tuple]*host.Flow
	byID     map[sid.SocketID]host.Tuple
	sessions map[host.SessionKey][]byte
	answered map[host.Tuple]host.Tuple // from other ports, for the flows
	steps    []host.Step
	heard    uint64 // CLOCK_MONOTONIC, ns
	quiet    map[sid.Locator]bool
	untold   uint64
	walks    int // of the whole table
	lookups  int // of one flow
}

// add is a connection of a program.
func (e *fakeEdge) add(f *host.Flow) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flows[f.Tuple], e.byID[f.ID] = f, f.Tuple
}

func (e *fakeEdge) Walk(f func(host.Flow) bool) error {
	e.walks++
	for _, x := range e.flows {
		if !f(*x) {
			break
		}
	}
	return nil
}

func (e *fakeEdge) Flow(id sid.SocketID) (host.Flow, bool, error) { return e.Lookup(e.byID[id]) }

func (e *fakeEdge) Lookup(t host.Tuple) (host.Flow, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lookups++
	if f := e.flows[t]; f != nil {
		return *f, true, nil
	}
	return host.Flow{}, false, nil
}

func (e *fakeEdge) Answered(t host.Tuple) (host.Flow, bool, error) { return e.Lookup(e.answered[t]) }

func (e *fakeEdge) Steer(steps []host.Step) (failed []int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, s := range steps {
		e.steps = append(e.steps, s)
		f := e.flows[s.Flow]
		if f == nil || s.Birth != 0 && s.Birth != f.Birth {
			failed = append(failed, i)
			continue
		}
		switch s.Verb {
		case host.Accept:
			e.byID[s.Local.Socket] = s.Flow
		case host.Bind:
			e.byID[s.Local.Socket] = s.Flow
			f.ID, f.Locator, f.State = s.Local.Socket, s.Local.Locator, host.BoundFlow
			f.WirePeer = netip.AddrPortFrom(s.Peer.IP(), f.WirePeer.Port())
		case host.Retry:
			if f.State == host.BoundFlow {
				failed = append(failed, i)
				continue
			}
			e.byID[s.Local.Socket] = s.Flow
		case host.Forget:
			delete(e.flows, s.Flow)
		case host.Drop:
			delete(e.byID, s.Local.Socket)
		}
	}
	return failed, nil
}

func (e *fakeEdge) Send(from, to netip.Addr, _ uint8, payload []byte) error {
	e.net.queue = append(e.net.queue, fakePacket{from, to, slices.Clone(payload)})
	return nil
}

func (e *fakeEdge) PutSessions(all map[host.SessionKey][]byte) error {
	maps.Copy(e.sessions, all)
	return nil
}

func (e *fakeEdge) DeleteSession(k host.SessionKey) error { delete(e.sessions, k); return nil }
func (e *fakeEdge) AllSessions(f func(host.SessionKey, []byte) bool) error {
	for k, b := range e.sessions {
		if !f(k, b) {
			break
		}
	}
	return nil
}

func (e *fakeEdge) Space() sid.Space                                  { return space }
func (e *fakeEdge) Adopt(host.Adoption) error                         { return nil }
func (e *fakeEdge) Nudge(host.Tuple, wire.Transport, uint16) error    { return nil }
func (e *fakeEdge) Heard(host.Tuple) (uint64, error)                  { return max(e.heard, 1), nil }
func (e *fakeEdge) Untold() (uint64, error)                           { return e.untold, nil }
func (e *fakeEdge) Unread() bool                                      { return false }
func (e *fakeEdge) Offered(_ host.Addr, id sid.SocketID) sid.SocketID { return id }

func (e *fakeEdge) ProbeNonce() uint64           { return rand.Uint64() }
func (e *fakeEdge) ProbeNonceOf(n uint32) uint64 { return uint64(n) }

func (e *fakeEdge) Quiet(l sid.Locator, yes bool) error { e.quiet[l] = yes; return nil }

var (
	space   = sid.DefaultSpace()
	webID   = sid.ServiceID{SS: 1, Suffix: 0x00c0ffee00c0ffee}
	webAddr = space.ServiceAddr(webID)
)

func newFakeNet(t *testing.T) *fakeNet { return &fakeNet{t: t, at: map[sid.Locator]*fakeHost{}} }

// host makes one at the locator.
func (n *fakeNet) host(at sid.Locator) *fakeHost {
	e := &fakeEdge{net: n, flows: map[host.Tuple]*host.Flow{}, byID: map[sid.SocketID]host.Tuple{}, sessions: map[host.SessionKey][]byte{}, quiet: map[sid.Locator]bool{}}
	h := &fakeHost{edge: e, at: at}
	h.start()
	n.at[at] = h
	return h
}

// start begins a daemon on the edge, as after a kill.
func (h *fakeHost) start() {
	h.startUntold()
	h.Sessions.Trusts(nil)
}

// startUntold is start of a daemon that does not know yet whether its network has keys.
func (h *fakeHost) startUntold() {
	h.inbox = make(chan func(), 1024)
	h.where, h.serves, h.answers = &fakePlaces{at: h.at}, &fakeServing{all: map[sid.Triple]bool{}}, &fakeController{err: errAway}
	h.Sessions = New(context.Background(), Config{
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Post: func(f func()) { h.inbox <- f },
		Waiting: func() int { return len(h.inbox) }, Flows: func() uint32 { return h.crowd },
		Places: h.where, Serving: h.serves, Controller: h.answers, Meter: fakeMeter{},
	})
	h.tcp = &fakeTCP{kicked: map[host.Tuple]bool{}}
	h.Sessions.kernel = h.tcp
	h.Sessions.open(time.Now(), h.edge)
}

// signs gives the hosts keys, with certificates for the locators.
func (n *fakeNet) signs(owned map[*fakeHost][]sid.Locator) {
	network := ed25519.NewKeyFromSeed(make([]byte, 32))
	seed := byte(1)
	for h, list := range owned {
		k := &session.Keys{Host: ed25519.NewKeyFromSeed(slices.Repeat([]byte{seed}, 32)), Network: []ed25519.PublicKey{network.Public().(ed25519.PublicKey)},
			Certificates: map[sid.Locator]wire.Certificate{}}
		for _, l := range list {
			k.Certificates[l] = wire.Certify(network, k.Host.Public().(ed25519.PublicKey), l, 0, 1<<40)
		}
		h.Trusts(k)
		seed++
	}
}

// connect makes a bound flow, known to the two edges only.
func (n *fakeNet) connect(c, s *fakeHost, port uint16, p sid.Proto) (host.Tuple, host.Tuple) {
	cid, sock := newSocketID(c.at), newSocketID(s.at)
	stable := c.at.Addr(uint64(cid))
	ct := host.Tuple{Local: netip.AddrPortFrom(space.Identity(1), port), Remote: netip.AddrPortFrom(webAddr, 80), Proto: p}
	st := host.Tuple{Local: netip.AddrPortFrom(webAddr, 80), Remote: netip.AddrPortFrom(stable, port), Proto: p}
	add := func(h *fakeHost, t host.Tuple, id sid.SocketID, role host.Role, peer netip.Addr) {
		h.edge.add(&host.Flow{ID: id, Role: role, Proto: p, State: host.BoundFlow, Service: webID, Tuple: t, Birth: id, Stable: stable,
			Local: t.Local, Peer: t.Remote, Locator: h.at, WirePeer: netip.AddrPortFrom(peer, t.Remote.Port())})
	}
	add(c, ct, cid, host.Client, s.at.Addr(uint64(sock)))
	add(s, st, sock, host.Server, stable)
	return ct, st
}

// run delivers until nothing is under way.
func (n *fakeNet) run() {
	for {
		for _, h := range n.hosts() {
			for len(h.inbox) > 0 {
				(<-h.inbox)()
			}
			h.Settle(time.Now())
		}
		if len(n.queue) == 0 {
			return
		}
		queue := n.queue
		n.queue = nil
		for _, p := range queue {
			if n.tap != nil {
				n.tap(p)
			}
			if n.to != nil && space.Services.Contains(p.to) {
				p.to = n.to.at.Addr(sid.Low(p.to))
			}
			switch h := n.at[sid.LocatorOf(p.to)]; {
			case h == nil:
			case sid.Low(p.to) == sid.HostSuffix && p.payload[1] == byte(wire.TypeProbe):
				n.kernelAnswers(h, p)
			default:
				h.Event(host.Event{Kind: host.Message, Packet: p.packet()})
			}
		}
	}
}

// kernelAnswers does what a host's edge does with a PROBE.
func (n *fakeNet) kernelAnswers(h *fakeHost, p fakePacket) {
	if !h.cut {
		p.payload[1] = byte(wire.TypeProbeAck)
		n.queue = append(n.queue, fakePacket{p.to, p.from, p.payload})
	}
}

// ask lets the time pass in which hosts are asked whether they are there.
func (n *fakeNet) ask(h *fakeHost) {
	for n.run(); len(h.suspects) > 0; n.run() {
		h.giveUpSilent(h.doubts.Deadline())
	}
}

func (n *fakeNet) hosts() (list []*fakeHost) {
	for _, h := range n.at {
		if !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}

// packet is the message as the edge hands it over.
func (p *fakePacket) packet() []byte {
	from, to := p.from.As16(), p.to.As16()
	b := append(make([]byte, 8, 48+len(p.payload)), from[:]...)
	b = append(b, to[:]...)
	return append(append(b, make([]byte, 8)...), p.payload...)
}

// agree checks that the two edges send to each other.
func (n *fakeNet) agree(c, s *fakeHost, ct, st host.Tuple) {
	n.t.Helper()
	a, b := c.edge.flows[ct], s.edge.flows[st]
	if a == nil || b == nil || a.WirePeer.Addr() != b.Locator.Addr(uint64(b.ID)) || b.WirePeer.Addr() != a.Locator.Addr(uint64(a.ID)) {
		n.t.Fatalf("the ends do not send to each other:\nclient %+v\nserver %+v", a, b)
	}
}
