package gateway

import (
	"net/netip"
	"sync"
)

// A room holds so many flows. Who wants in waits outside, in the queue of the listening socket, which is
// where the kernel keeps clients at no cost of ours.
type room struct {
	mu    sync.Mutex
	freed *sync.Cond
	size  int // 0: endless
	used  int
}

func newRoom(size int) *room {
	r := &room{size: size}
	r.freed = sync.NewCond(&r.mu)
	return r
}

// enter waits for a place; it gives up when closed says so, which wake makes it ask.
func (r *room) enter(closed func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.size > 0 && r.used >= r.size {
		if closed() {
			return false
		}
		r.freed.Wait()
	}
	r.used++
	return true
}

// try enters if there is a place.
func (r *room) try() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size > 0 && r.used >= r.size {
		return false
	}
	r.used++
	return true
}

// add enters whether there is a place or not.
func (r *room) add() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used++
}

func (r *room) leave() {
	r.mu.Lock()
	r.used--
	r.mu.Unlock()
	r.freed.Signal()
}

func (r *room) resize(n int) {
	r.mu.Lock()
	r.size = n
	r.mu.Unlock()
	r.freed.Broadcast()
}

// wake makes who waits ask again whether it is closed.
func (r *room) wake() {
	r.mu.Lock()   // a waiter has asked and does not wait yet, or waits
	r.mu.Unlock() //nolint:staticcheck // it waits for the one that has asked
	r.freed.Broadcast()
}

func (r *room) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}

// A crowd counts flows by client.
type crowd struct {
	mu  sync.Mutex
	by  map[netip.Prefix]int
	max int // 0: endless
}

func newCrowd(max int) *crowd { return &crowd{by: map[netip.Prefix]int{}, max: max} }

// client is who counts as one: an IPv4 address, or the /64 that an IPv6 user has all of.
func client(a netip.Addr) netip.Prefix {
	bits := 32
	if a = a.Unmap().WithZone(""); a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // of a valid address
	return p
}

func (c *crowd) enter(a netip.Addr) bool {
	if !a.IsValid() { // came by a Unix socket: of this host
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	who := client(a)
	if c.max > 0 && c.by[who] >= c.max {
		return false
	}
	c.by[who]++
	return true
}

// add enters whether it may or not.
func (c *crowd) add(a netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[client(a)]++
}

func (c *crowd) leave(a netip.Addr) {
	if !a.IsValid() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	who := client(a)
	if c.by[who]--; c.by[who] <= 0 {
		delete(c.by, who)
	}
}

func (c *crowd) resize(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.max = n
}
