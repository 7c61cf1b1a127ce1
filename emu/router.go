package emu

import (
	"fmt"
	"time"
)

// A Router is a node that runs a program.
type Router struct {
	net     *Net
	name    string
	number  int
	program Program
	shard   *shard
	pinned  int // number of a shard and 1, 0 for any
	ports   []*Port
	timer   timer

	in, spare []Packet // that wait for the program; the two take turns
	waiting   bool     // in the shard's queue
	down      bool
	failure   error // that the program ended with; nil while it runs
	count     RouterCounters
	counted   uint64 // packets at the last measurement
}

// A Port is where a link ends.
type Port struct {
	Number int
	Link   *Link
	out    *way // from here
	in     *way // to here
	side   int  // which end of the link it is
	local  *Edge
}

// RouterCounters count packets, segments of trains one by one.
type RouterCounters struct {
	In      uint64 `json:"in"`      // that came by links
	Dropped uint64 `json:"dropped"` // by the program
	Down    uint64 `json:"down"`    // that came while the router was down or its program had failed
	Refused uint64 `json:"refused"` // for a port that does not exist
	Local   uint64 `json:"local"`   // for the router's own namespace
	Made    uint64 `json:"made"`    // by the program
	Starved uint64 `json:"starved"` // that the program could not make for lack of memory
}

// Name is the router's name.
func (r *Router) Name() string { return r.name }

// Number is the router's number, from 0 in the order in which they were added.
func (r *Router) Number() int { return r.number }

// Ports are the router's ports by number.
func (r *Router) Ports() []*Port { return r.ports }

// Program is what the router runs.
func (r *Router) Program() Program { return r.program }

// Counters are the present counters; to be called inside [Net.Do].
func (r *Router) Counters() RouterCounters { return r.count }

// Failure is the error of a program that panicked, nil otherwise; to be called inside [Net.Do].
func (r *Router) Failure() error { return r.failure }

// Do calls f on the router's thread, as [Net.Do]: for a program that has a goroutine of its own.
func (r *Router) Do(f func()) error { return r.net.Do(r, f) }

// Now is the time on the network's clock as the shard last read it.
func (r *Router) Now() time.Duration { return r.shard.now }

// Far is the node at the other end of a port's link.
func (p *Port) Far() Node { return p.Link.nodes[1-p.side] }

// Peer is the port at the other end.
func (p *Port) Peer() *Port { return p.Link.ports[1-p.side] }

// Rate is what the link carries out of the port, in bit/s, 0 for no limit; to be called on the router's thread.
func (p *Port) Rate() uint64 { return p.out.line.p.Rate }

// Waiting is how many bytes wait at a time for the rate of the link out of the port; to be called on the router's
// thread.
func (p *Port) Waiting(now time.Duration) uint64 { return p.out.line.Waiting(now) }

// Up reports whether packets pass in both directions.
func (p *Port) Up() bool { return !p.out.down.Load() && !p.in.down.Load() }

// SetLocal makes an edge the port's side in the router's own namespace: packets that the program sets to [Local] of
// this port leave there, and what comes in there goes out of the port without passing the program.
func (p *Port) SetLocal(e *Edge) {
	p.local = e
	e.out = p.out
}

// Local is the port's side in the router's own namespace, nil for none.
func (p *Port) Local() *Edge { return p.local }

// Swap replaces the program, which may be of another kind; to be called inside [Net.Do]. It repairs a router whose
// program had failed.
func (r *Router) Swap(p Program) {
	r.letGo(r.shard)
	r.program, r.failure = p, nil
	if r.shard == nil {
		return // it has not begun
	}
	r.shard.wheel.remove(&r.timer)
	r.begin()
}

// SetDown stops a router, which loses all packets, or lets it go on; to be called inside [Net.Do].
func (r *Router) SetDown(down bool) {
	again := r.down && !down && r.shard != nil
	if r.down = down; again {
		r.begin() // it may have slept through the moment at which it was to wake
	}
}

// Down reports whether the router was stopped; to be called inside [Net.Do].
func (r *Router) Down() bool { return r.down }

// begin lets a timed program wake for the first time.
func (r *Router) begin() {
	if _, ok := r.program.(Timed); ok {
		r.shard.wheel.set(&r.timer, r.shard.now)
	}
}

func (r *Router) attach(w *way) (*Port, error) {
	if len(r.ports) == MaxPorts {
		return nil, fmt.Errorf("router %s has %d ports already, as many as there can be", r.name, MaxPorts)
	}
	p := &Port{Number: len(r.ports), out: w}
	r.ports = append(r.ports, p)
	return p, nil
}

// take is where packets arrive.
func (r *Router) take(s *shard, run []Packet) {
	if len(run) > 0 {
		r.arrive(s, run, s.arena.tally(run, run[0].Port))
	}
}

// arrive lets packets wait for the program that came by one port.
func (r *Router) arrive(s *shard, run []Packet, t tally) {
	if r.down || r.failure != nil {
		r.count.Down += t.packets
		for i := range run {
			s.arena.release(run[i].slot)
		}
		return
	}
	if t.all&flagParsed == 0 {
		s.arena.parseAll(run)
	}
	r.count.In += t.packets
	r.in = append(r.in, run...)
	if !r.waiting {
		r.waiting = true
		s.ready = append(s.ready, r)
	}
}

// process has the program decide over all packets that wait, and sends them on.
func (r *Router) process(s *shard) {
	r.waiting = false
	all := r.in
	r.in, r.spare = r.spare[:0], r.in
	for len(all) > 0 {
		n := min(len(all), burst)
		if !r.decide(all[:n]) {
			return // what the program had is lost with it
		}
		r.dispatch(s, all[:n])
		all = all[n:]
	}
}

// burst is how many packets a program gets at a time.
const burst = 64

// decide calls the program. One that panics stops its router, and no other.
func (r *Router) decide(batch []Packet) (ok bool) {
	defer func() {
		if !ok {
			r.fail(recover())
		}
	}()
	r.program.Process(r, batch)
	return true
}

// wake calls a timed program.
func (r *Router) wake(s *shard) {
	ok, next := false, Never
	defer func() {
		if !ok {
			r.fail(recover())
		}
	}()
	if p, timed := r.program.(Timed); timed && !r.down {
		next = p.Wake(r, s.now)
	}
	if ok = true; next != Never {
		r.WakeBy(next)
	}
}

// WakeBy lets a timed program be woken at a moment, if it is not to be woken before anyway.
func (r *Router) WakeBy(at time.Duration) {
	if r.timer.slot == idle || at < r.timer.due {
		r.shard.wheel.set(&r.timer, at)
	}
}

func (r *Router) fail(cause any) {
	r.failure = fmt.Errorf("the program of router %s panicked: %v", r.name, cause)
	r.shard.wheel.remove(&r.timer)
	r.net.opt.Log("%v: the router has stopped, the others go on", r.failure)
}

// dispatch sends a batch to where the program wants it, each run of equal ports at once.
func (r *Router) dispatch(s *shard, batch []Packet) {
	for len(batch) > 0 {
		port, n := batch[0].Port, 1
		for n < len(batch) && batch[n].Port == port {
			n++
		}
		r.sendRun(s, port, batch[:n])
		batch = batch[n:]
	}
}

func (r *Router) sendRun(s *shard, port uint16, run []Packet) {
	switch {
	case int(port) < len(r.ports):
		r.ports[port].out.send(s, run)
		return
	case port == Taken:
		return
	case port == Drop:
		r.count.Dropped += packets(run)
	case port&local != 0 && int(port&^local) < len(r.ports) && r.ports[port&^local].local != nil:
		r.count.Local += packets(run)
		r.ports[port&^local].local.take(s, run)
		return
	default:
		r.count.Refused += packets(run)
	}
	for i := range run {
		s.arena.release(run[i].slot)
	}
}

// packets counts those of trains one by one.
func packets(run []Packet) (n uint64) {
	for i := range run {
		n += uint64(run[i].count)
	}
	return n
}
