package main

import (
	"fmt"
	"net/netip"
	"strings"
)

// prefix begins the keys of all transfers to clients with this port.
func prefix(peer netip.AddrPort) string { return fmt.Sprintf("tftp/%d/", peer.Port()) }

// key names a client's transfer: its port, and the /64 of its host's locator. The lower half of its address
// changes when its flow resolves anew.
func key(peer netip.AddrPort) string {
	host, _ := peer.Addr().Unmap().Prefix(min(64, peer.Addr().Unmap().BitLen()))
	return prefix(peer) + strings.ReplaceAll(host.Masked().String(), "/", "-")
}

// find looks for the transfer that an acknowledgement of an unknown client belongs to.
func (s *server) find(peer netip.AddrPort, block uint16) (string, place, bool) {
	var at place
	if ok, err := s.sessions.Get(key(peer), &at); err != nil || ok {
		return key(peer), at, err == nil
	}
	return s.moved(peer, block)
}

// moved finds the transfer of a client whose host has another locator by now. Its port has to be that of
// one transfer only, and the block near to where that was.
func (s *server) moved(peer netip.AddrPort, block uint16) (string, place, bool) {
	keys, err := s.sessions.Keys(prefix(peer))
	if err != nil || len(keys) != 1 {
		return "", place{}, false
	}
	var at place
	if ok, err := s.sessions.Get(keys[0], &at); err != nil || !ok {
		return "", place{}, false
	}
	t := transfer{place: at}
	n := t.extend(block)
	return keys[0], at, n >= at.Acked && n <= at.Acked+2*saveEvery && n <= t.blocks()
}
