package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"scaffold.dev/scaffold/internal/boost/door"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/memory"
	"scaffold.dev/scaffold/internal/boost/peering"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// A peer is another agent, and the trunk to it. Of two agents the one whose name comes first begins the trunk.
type peer struct {
	a             *Agent
	name          string
	send, receive *memory.Mapping
	trunk         *trunk.Trunk
	ctx           context.Context // ends with the peer
	end           context.CancelFunc
	all           sync.WaitGroup
	inherits      bool // it goes on with what a process before this one had

	born    uint64                     // incarnation of this end of the trunk
	numbers atomic.Uint64              // of data connections
	asked   atomic.Int64               // sessions that this agent is being asked for
	dialed  map[trunk.Pair]*trunk.Path // by use, which one goroutine at a time calls

	at      []netip.AddrPort // under the agent's lock, its addresses
	doors   map[trunk.Pair]netip.AddrPort
	number  uint64 // so are these, which the agent that begins the trunk draws
	secrets map[trunk.Pair]seal.Secret
}

func (l *Lane) isNear(name string) bool { return slices.Contains(l.Near, name) }

// meet makes trunks to agents that are new, which it returns, and notes where the others are.
func (a *Agent) meet(peers []Peer) (made []*peer, err error) {
	for _, p := range peers {
		m, err := a.know(p)
		if m != nil {
			made = append(made, m)
		}
		if err != nil {
			return made, err
		}
	}
	return made, nil
}

// gone are the agents that there are and that are not named.
func (a *Agent) gone(named []Peer) (list []*peer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, p := range a.peers {
		if !slices.ContainsFunc(named, func(n Peer) bool { return n.Name == name }) {
			list = append(list, p)
		}
	}
	return list
}

// part ends trunks.
func (a *Agent) part(list []*peer) {
	for _, p := range list {
		a.mu.Lock()
		delete(a.peers, p.name)
		delete(a.byTrunk, p.number)
		a.mu.Unlock()
		p.close()
	}
}

// know makes the trunk to an agent that is new.
func (a *Agent) know(in Peer) (made *peer, err error) {
	if in.Name == a.Name {
		return nil, fmt.Errorf("agent %s is told that it is its own peer", a.Name)
	}
	a.mu.Lock()
	p := a.peers[in.Name]
	a.mu.Unlock()
	if p != nil {
		p.use(in)
		return nil, nil
	}
	p, err = a.newPeer(in)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.peers[in.Name] = p
	if p.dials() {
		a.byTrunk[p.number] = p
	}
	a.mu.Unlock()
	return p, nil
}

func (p *peer) dials() bool { return p.a.Name < p.name }

func (a *Agent) newPeer(in Peer) (*peer, error) {
	p := &peer{
		a: a, name: in.Name, number: rand.Uint64() | 1, born: a.incarnation(),
		dialed: map[trunk.Pair]*trunk.Path{}, secrets: map[trunk.Pair]seal.Secret{},
	}
	strategy, _ := a.strategy() // Start has looked
	shape := a.Shape
	shape.First, shape.Most, shape.Open = a.Connections, max(a.Most, a.Connections), a.Open
	c := trunk.Config{
		Dials: p.dials(), Incarnation: p.born, Protection: a.Protection, Strategy: strategy, Shape: shape, Control: a.Control,
		Patience: a.Patience, Connect: p.connect, Finish: a.Ends.Finished,
		Restore: p.restore,
		Ended: func(e trunk.Ended) {
			if a.Legs != nil {
				a.Legs.Over(e.Client, e.Server, e.End)
			}
			a.Report(Event{Agent: p.name, Ended: &e})
		},
		Broken: func(err error) { a.Report(Event{Agent: p.name, Err: err}) },
		Changed: func(c trunk.Change) {
			a.lookAtNames()
			a.Report(Event{Agent: p.name, Path: &c})
		},
	}
	var err error
	if p.receive, err = memory.Map(a.Memory); err != nil {
		return nil, err
	}
	if err := p.remember(&c); err != nil {
		p.giveBack()
		return nil, err
	}
	c.Send, c.Receive = p.send, p.receive
	p.trunk = trunk.New(c)
	p.ctx, p.end = context.WithCancel(a.ctx)
	p.all.Go(p.watch)
	p.use(in)
	return p, nil
}

func (p *peer) config(path *trunk.Path) peering.Config {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	return peering.Config{Path: path, Number: p.number, Incarnation: p.born, Protection: p.a.Protection, Silence: p.a.Silence}
}

// close ends the trunk, and then gives its memory back.
func (p *peer) close() {
	p.end()
	p.trunk.Close()
	p.all.Wait()
	p.giveBack()
}

func (p *peer) giveBack() {
	for _, m := range []*memory.Mapping{p.send, p.receive} {
		if m == nil {
			continue
		}
		if err := m.Close(); err != nil {
			p.a.Report(Event{Err: err})
		}
	}
	if p.a.Keep != nil && p.a.ctx.Err() == nil { // else this process ends, and what it held is its keeper's to let go
		if err := p.a.Keep.Release(trunkKey(p.name)); err != nil {
			p.a.Report(Event{Err: err})
		}
	}
}

// connect connects to the server of a session that the other agent asks for, if that is in a lane of both.
func (p *peer) connect(ctx context.Context, m frame.Open) (trunk.Attached, error) {
	if why := p.a.forbidden(p.name, m); why != 0 {
		return trunk.Attached{}, &trunk.Refused{Reason: why}
	}
	if p.a.isNamed(m.Lane) {
		c, err := p.a.Names.Dial(ctx, m.Server)
		return trunk.Attached{Conn: c}, err
	}
	dial := p.a.Ends.Dial
	if p.a.rewrites(m.Lane) {
		dial = func(ctx context.Context, client, server netip.AddrPort) (*net.TCPConn, frame.Options, frame.Options, error) {
			return p.a.Legs.Dial(ctx, m.Lane, client, server)
		}
	}
	c, host, own, err := dial(ctx, m.Client, m.Server)
	return trunk.Attached{Conn: c, Host: host, Own: own}, err
}

// rewrites reports whether a lane's connections are rewritten.
func (a *Agent) rewrites(lane uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lanes[lane]
	return l != nil && l.Rewrite && a.Legs != nil
}

// serve opens a door to other agents.
func (a *Agent) serve(l net.Listener) {
	err := door.Serve(a.ctx, l, door.Config{
		TLS: a.Server, Known: a.known, Secret: a.secretOf, Control: a.control, Data: a.data, Count: a.count,
	})
	if err != nil {
		a.Report(Event{Err: fmt.Errorf("the port for other agents: %w", err)})
	}
}

func (a *Agent) known(from netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.peers {
		if slices.ContainsFunc(p.at, func(at netip.AddrPort) bool { return at.Addr().Unmap() == from }) {
			return true
		}
	}
	return false
}

func (a *Agent) count(why door.Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused[why]++
}

// secretOf is that of a trunk on the path by which a connection comes.
func (a *Agent) secretOf(number uint64, c net.Conn) (secret seal.Secret, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.byTrunk[number]; p != nil {
		secret, there = p.secrets[pairOf(c)]
	}
	return secret, there
}

// errNoPeer says that who has a certificate of an agent is none that this one was told of.
var errNoPeer = errors.New("it is no agent that this one was told of, or not one that begins the trunk between the two")

// control takes a control connection of an agent that begins the trunk between the two.
func (a *Agent) control(c *tls.Conn) {
	defer c.Close()
	name, err := a.Identity(c.ConnectionState())
	var p *peer
	if err == nil {
		a.mu.Lock()
		p = a.peers[name]
		a.mu.Unlock()
		if p == nil || p.dials() {
			err = errNoPeer
		}
	}
	var hello frame.Hello
	if err == nil {
		hello, err = peering.Greet(c)
	}
	if err == nil {
		err = p.answer(c, hello)
	}
	if err != nil && a.ctx.Err() == nil {
		a.Report(Event{Agent: name, Err: err})
	}
}

// answer keeps a control connection.
func (p *peer) answer(c *tls.Conn, hello frame.Hello) error {
	path, err := p.path(c)
	if err != nil {
		return err
	}
	return peering.Answer(p.ctx, c, hello, p.config(path), func(s seal.Secret) error { return p.begun(hello.Trunk, path, s) })
}

// begun notes the number of the trunk, and the secret that it has on a path. A number is that of the agent that has begun the
// trunk, and of no other.
func (p *peer) begun(number uint64, on *trunk.Path, secret seal.Secret) error {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	if p.a.peers[p.name] != p { // it was given up meanwhile
		return errNoPeer
	}
	if other := p.a.byTrunk[number]; other != nil && other != p {
		return fmt.Errorf("agent %s says that trunk %#x is its own, which is that to agent %s", p.name, number, other.name)
	}
	if number != p.number { // the agent has begun it anew: what it said of other paths before is of the former one
		p.secrets = map[trunk.Pair]seal.Secret{}
	}
	delete(p.a.byTrunk, p.number)
	p.number, p.secrets[on.Pair] = number, secret
	p.a.byTrunk[number] = p
	return nil
}

// data serves a data connection, whose HELLO the door has verified.
func (a *Agent) data(c net.Conn, hello frame.Hello) {
	a.mu.Lock()
	p := a.byTrunk[hello.Trunk]
	var secret seal.Secret
	pair := pairOf(c)
	if p != nil {
		secret = p.secrets[pair]
	}
	a.mu.Unlock()
	tcp, ok := c.(*net.TCPConn)
	var path *trunk.Path
	if p != nil {
		path = p.trunk.Path(pair)
	}
	if path == nil || !ok {
		c.Close()
		return
	}
	peering.Data(tcp, hello, secret, p.config(path)) //nolint:errcheck // the trunk has told what the other agent did wrong
}
