package registry

import (
	"io"
	"testing"
)

// TestTheEdgeAsksTheKernelWhereItCan: first packets are let in while a socket listens, in guests, too, so that a daemon
// that is away refuses nobody. Where the edge would not find the socket they are let in until the daemon withdraws.
func TestTheEdgeAsksTheKernelWhereItCan(t *testing.T) {
	for name, c := range map[string]struct {
		guest  uint16
		device uint32
		vrf    string
		always bool
	}{
		"on the host":                                {0, 0, "", false},
		"on the host, bound to an uplink":            {0, 7, "", false},
		"on the host, whose uplinks are in a VRF":    {0, 7, "red", true},
		"in a guest":                                 {aGuest, 0, "", false},
		"in a guest, bound to a device of it":        {aGuest, 7, "", true},
		"in a guest of a host with uplinks in a VRF": {aGuest, 0, "red", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{vrf: c.vrf, devices: map[uint64]uint32{1: c.device}}
			r := in(t, w, io.Discard)
			w.users[1] = 0
			r.replace(0, nil)
			r.Policy(policy())
			r.event(c.guest, listens(1))
			if !w.admitted[web] || w.always[web] != c.always {
				t.Errorf("admitted %v, whether or not a socket listens: %v, want %v", w.admitted[web], w.always[web], c.always)
			}
		})
	}
}

// TestASecondSocketThatTheEdgeDoesNotFindCounts: a guest's, bound to a device, beside the host's own.
func TestASecondSocketThatTheEdgeDoesNotFindCounts(t *testing.T) {
	w := &world{devices: map[uint64]uint32{2: 7}}
	r := in(t, w, io.Discard)
	w.users[1], w.users[2] = 0, 0
	r.replace(0, nil)
	r.Policy(policy())
	r.event(0, listens(1))
	before := w.always[web]
	r.event(aGuest, listens(2))
	if before || !w.always[web] {
		t.Errorf("let in whether or not a socket listens: %v, then %v; want only since the guest's", before, w.always[web])
	}
}
