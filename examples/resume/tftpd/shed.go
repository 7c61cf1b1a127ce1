package main

import (
	"net"
	"time"
)

// shed gives one transfer up: its place is written down, then the client's host is told to look for
// another instance. The client gets one block more before that: its acknowledgement is what the other
// instance hears first, and until then a client is silent for the seconds of its own timer.
func (s *server) shed(now time.Time, peer *net.UDPAddr, t *transfer) {
	s.send(now, peer, t, true)
	s.forget(peer.AddrPort())
	err := s.fail(peer)
	s.log("%v: shed after block %d (%v)", peer, t.Acked, err)
}

// shedAll gives all transfers up.
func (s *server) shedAll() {
	for peer, t := range s.transfers {
		s.shed(time.Now(), net.UDPAddrFromAddrPort(peer), t)
	}
}
