package main

import (
	"time"

	"scaffold.dev/scaffold/emu"
)

// maxSenders is how many senders have a bucket of their own.
const maxSenders = 1 << 16

// A sender is a host: the upper half of its IPv6 address, or all of its IPv4 address.
type sender [8]byte

// senderOf reads who sent a packet of IP.
func senderOf(p *emu.Packet, ip []byte) (s sender) {
	if p.IPv4() {
		copy(s[:], ip[12:16])
	} else {
		copy(s[:], ip[8:16])
	}
	return s
}

// A bucket fills at the rate, up to the burst.
type bucket struct {
	bytes float64
	at    time.Duration // when it was filled last
}

// take takes bytes out, if there are as many.
func (b *bucket) take(now time.Duration, rate, burst uint64, bytes float64) bool {
	b.bytes = min(float64(burst), b.bytes+float64(rate)/8*(now-b.at).Seconds())
	b.at = now
	if b.bytes < bytes {
		return false
	}
	b.bytes -= bytes
	return true
}
