package mobility

import (
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
)

func FuzzParseHeld(f *testing.F) {
	tuple := host.Tuple{Local: netip.AddrPortFrom(space.Identity(1), 1), Remote: netip.AddrPortFrom(webAddr, 80), Proto: sid.TCP}
	f.Add(held{tuple, sid.NewSocketID(1)}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, rest, err := parseHeld(b)
		if err == nil && string(h.append(nil))+string(rest) != string(b) {
			t.Errorf("%x is read as %v and %x", b, h, rest)
		}
	})
}

// What is saved of a flow says whose it is; of the host's own it is what daemons without guests read.
func TestASavedFlowKnowsItsGuest(t *testing.T) {
	for _, guest := range []uint16{0, 1, host.MaxGuests} {
		h := held{tuple: host.Tuple{Local: netip.MustParseAddrPort("[fd5e::1]:4000"), Remote: netip.MustParseAddrPort("[fd5c::1]:80"), Proto: sid.TCP, Guest: guest}, birth: 7}
		b := append(h.append(nil), "behind"...)
		got, rest, err := parseHeld(b)
		if err != nil || got != h || string(rest) != "behind" {
			t.Errorf("guest %d: %+v %q %v, want %+v", guest, got, rest, err, h)
		}
		if n := len(b) - len("behind"); (n == heldLen) != (guest == 0) {
			t.Errorf("guest %d: %d bytes, those of the host's own have %d", guest, n, heldLen)
		}
		for n := range len(b) - len("behind") {
			if _, _, err := parseHeld(b[:n]); err == nil {
				t.Errorf("guest %d: %d of %d bytes are taken", guest, n, len(b))
			}
		}
	}
}
