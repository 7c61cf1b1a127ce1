package emu

import (
	"errors"
	"fmt"
	"sync"
)

// A Move puts a router into another shard.
type Move struct {
	Router *Router
	Shard  int
}

// Move puts routers into other shards while packets flow. All shards stand still meanwhile; no packet is lost or
// changes its place, and in virtual time nothing shows that anything moved. A router's own interfaces move with it.
func (n *Net) Move(moves ...Move) error {
	for _, m := range moves {
		if m.Shard < 0 || m.Shard >= len(n.shards) {
			return fmt.Errorf("router %s to shard %d: there are %d, from 0", m.Router.name, m.Shard, len(n.shards))
		}
	}
	resume, err := n.halt()
	if err != nil {
		return err
	}
	defer resume()
	for _, s := range n.shards {
		s.collect()
	}
	for _, s := range n.shards {
		s.takeBack()
	}
	back := map[*Router]*shard{}
	for _, m := range moves {
		if _, again := back[m.Router]; !again {
			back[m.Router] = m.Router.shard
		}
		m.Router.shard = n.shards[m.Shard]
	}
	if err := n.allowed(); err != nil {
		for r, s := range back {
			r.shard = s
		}
		return err
	}
	for r, from := range back {
		r.leave(from)
	}
	n.resettle()
	return nil
}

// halt lets all shards stand still until resume is called.
func (n *Net) halt() (resume func(), err error) {
	n.halting.Lock() // two who wait for each other's shards would wait for ever
	if n.opt.Virtual || !n.running {
		return n.halting.Unlock, nil
	}
	gate := make(chan struct{})
	var standing, gone sync.WaitGroup
	errs := make([]error, len(n.shards))
	for i, s := range n.shards {
		standing.Add(1)
		gone.Go(func() {
			arrived := sync.OnceFunc(standing.Done)
			errs[i] = s.ask(func() {
				s.settle()
				arrived()
				<-gate
			})
			arrived()
		})
	}
	standing.Wait()
	resume = sync.OnceFunc(func() {
		close(gate)
		gone.Wait()
		n.halting.Unlock()
	})
	if n.ended() {
		resume()
		return nil, errors.Join(errs...)
	}
	return resume, nil
}

// Reclass calls f while no packet moves. Afterwards no packet has a class, so that the classes of old may come to mean
// something else. Packets that programs keep are theirs to look after.
func (n *Net) Reclass(f func()) error {
	resume, err := n.halt()
	if err != nil {
		return err
	}
	defer resume()
	for _, s := range n.shards {
		s.collect()
	}
	for _, l := range n.links {
		for _, w := range l.ways {
			w.line.waiting.declass()
			w.arrivals.declass()
		}
	}
	for _, r := range n.routers {
		for i := range r.in {
			r.in[i].Class = 0
		}
	}
	f()
	return nil
}

func (s *schedule) declass() {
	for i := s.head; i != s.tail; i++ {
		s.ring[i&uint64(len(s.ring)-1)].Class = 0
	}
	for i := range s.heap {
		s.heap[i].Class = 0
	}
}

// ended reports whether a shard's thread is gone.
func (n *Net) ended() bool {
	for _, s := range n.shards {
		select {
		case <-s.gone:
			return true
		default:
		}
	}
	return false
}

// allowed refuses shards that virtual time can not keep apart.
func (n *Net) allowed() error {
	for _, l := range n.links {
		if shardOf(l.nodes[0]) == shardOf(l.nodes[1]) || !n.opt.Virtual {
			continue
		}
		for i, w := range l.ways {
			if w.line.p.latency() == 0 {
				return fmt.Errorf("in virtual time %s and %s stay in one shard: the link between them has no delay, or a jitter as long",
					l.nodes[i].Name(), l.nodes[1-i].Name())
			}
		}
	}
	return nil
}

// leave takes a router with its timer, its packets and its own interfaces out of a shard into the one that it has.
func (r *Router) leave(from *shard) {
	to := r.shard
	if from == to {
		return
	}
	r.letGo(from)
	if r.timer.slot != idle {
		from.wheel.remove(&r.timer)
		to.wheel.set(&r.timer, r.timer.due)
	}
	from.routers = without(from.routers, r)
	to.routers = append(to.routers, r)
	for _, p := range r.ports {
		if p.local != nil {
			p.local.leave(from, to)
		}
	}
}

func without(all []*Router, gone *Router) (left []*Router) {
	for _, r := range all {
		if r != gone {
			left = append(left, r)
		}
	}
	return left
}

// resettle gives every way to the shards of its ends, with what is on it.
func (n *Net) resettle() {
	for _, l := range n.links {
		for i, w := range l.ways {
			near, far := shardOf(l.nodes[i]), shardOf(l.nodes[1-i])
			if near != w.near || far != w.far {
				n.followed(w, far)
				w.leave(near, far)
			}
		}
	}
	n.border()
}

// followed moves who plays into the far end of a way.
func (n *Net) followed(w *way, far *shard) {
	for _, y := range n.players {
		if y.port.in == w {
			y.follow(w.far, far)
		}
	}
}

// leave moves a way. What is on it lies with the shard that receives.
func (w *way) leave(near, far *shard) {
	var parts []Part
	for queue := w.queue(); ; {
		if _, ok := queue.due(); !ok {
			break
		}
		parts = append(parts, queue.pop())
	}
	old := w.far
	old.wheel.remove(&w.timer)
	w.near, w.far = near, far
	for _, p := range parts {
		w.keep(old, p)
	}
	w.arm(far)
}

// keep puts a part of what is on the way where it belongs now.
func (w *way) keep(old *shard, p Part) {
	if old != w.far {
		own, ok := w.far.arena.adopt(old.arena, p.Packet)
		old.arena.release(p.slot)
		if !ok {
			w.missed++
			return
		}
		p.Packet = own
	}
	w.queue().pushAny(p)
}

// leave moves an interface.
func (e *Edge) leave(from, to *shard) {
	e.shard = to
	if e.net.opt.Virtual {
		return
	}
	from.poll.forget(e.device.fd())
	to.edges = append(to.edges, e)
	to.poll.watch(e.device.fd(), len(to.edges)-1) //nolint:errcheck // it could be watched before
}
