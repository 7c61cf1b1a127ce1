package host

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// A census of peers, room.h: how many flows each host number has begun here, and how many datagram flows there are. The
// programs count up and down, so do we, both atomically, in the same memory.
type peers struct {
	memory []byte
	before [peerCounts]int64 // of repair
	seen   [peerCounts]int64
}

// peerCounts is how many there are: one for each host number, and that of all datagrams.
const (
	allDatagrams = 1 << 16
	peerCounts   = allDatagrams + 1
)

// mapPeers maps the counts. Where the edge is older than they are, the flows are counted once.
func (e *Edge) mapPeers(counted bool) error {
	page := os.Getpagesize()
	size := (8*peerCounts + page - 1) / page * page
	memory, err := unix.Mmap(e.maps.Peers.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("host edge: map the counts of flows by peer: %w", err)
	}
	e.peers = &peers{memory: memory}
	if counted || !e.adopted {
		return nil
	}
	return scan(e.maps.EgressFlows, func(key *edgeFlowKey, out *edgeEgressFlow) bool {
		e.peers.note(key, out.Role, 1)
		return true
	})
}

func (p *peers) close() {
	if p != nil {
		unix.Munmap(p.memory) //nolint:errcheck // it was mapped
	}
}

func (p *peers) at(i int) *int64 { return (*int64)(unsafe.Pointer(&p.memory[8*i])) }

// note counts a flow that was entered (1) or is gone (-1): take_note of room.h.
func (p *peers) note(key *edgeFlowKey, role uint8, by int64) {
	each(key, role, func(i int) { atomic.AddInt64(p.at(i), by) })
}

// each names the counts that the flow is in.
func each(key *edgeFlowKey, role uint8, count func(i int)) {
	if Role(role) == Server {
		count(int(key.Remote[6])<<8 | int(key.Remote[7]))
	}
	if key.Proto != uint8(sid.TCP) {
		count(allDatagrams)
	}
}

// begin and end enclose a scan of all flows, for each of which there is see. A count that did not change meanwhile and is
// another one than was seen is put right: a daemon may have died between a flow's end and its note of it.
func (p *peers) begin() {
	for i := range p.before {
		p.before[i], p.seen[i] = atomic.LoadInt64(p.at(i)), 0
	}
}

func (p *peers) see(key *edgeFlowKey, role uint8) { each(key, role, func(i int) { p.seen[i]++ }) }

func (p *peers) end() {
	for i, n := range p.before {
		if n != p.seen[i] {
			atomic.CompareAndSwapInt64(p.at(i), n, p.seen[i])
		}
	}
}
