package fib

import (
	"net/netip"
	"testing"
)

// FuzzTable changes a table as the bytes say: each change is a byte of what to do, one of the length and four of the
// address, of which IPv6 has two copies so that long prefixes share much.
func FuzzTable(f *testing.F) {
	f.Add([]byte("\x00\x20abcd\x01\x10abcd\x02\x08abce\x80\x20abcd"))
	f.Add([]byte("\x04\x7fabcd\x05\x40abcd\x06\x41abcd\x07\x00abcd\x84\x7fabcd"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		tab, o := New(), oracle{}
		for ; len(ops) >= 6 && len(o) < 64; ops = ops[6:] {
			p := fuzzed(ops)
			if ops[0] >= 0x80 {
				delete(o, p)
				tab.Delete(p)
			} else {
				o[p] = First + Hop(ops[0])
				if err := tab.Set(p, o[p]); err != nil {
					t.Fatal(err)
				}
			}
			for q := range o {
				for _, a := range near(q) {
					if a.IsValid() && tab.Lookup(a) != o.lookup(a) {
						t.Fatalf("%v: %v, the oracle says %v, of %v", a, tab.Lookup(a), o.lookup(a), o)
					}
				}
			}
		}
	})
}

func fuzzed(op []byte) netip.Prefix {
	b := [4]byte(op[2:6])
	if op[0]&4 == 0 {
		return netip.PrefixFrom(netip.AddrFrom4(b), int(op[1])%33).Masked()
	}
	a := netip.AddrFrom16([16]byte{b[0], b[1], 4: b[2], 7: b[3], 8: b[0], 9: b[1], 12: b[2], 15: b[3]})
	return netip.PrefixFrom(a, int(op[1])%129).Masked()
}
