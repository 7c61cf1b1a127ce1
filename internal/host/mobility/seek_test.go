package mobility

import (
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
)

// TestAFlowIsFoundByWhatItsProgramSees: a datagram socket may be bound to no address, and see its peer at another port than
// it asked. A flow of an edge before has all ports.
func TestAFlowIsFoundByWhatItsProgramSees(t *testing.T) {
	at := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	ofSocket := func(peer string) host.Tuple {
		return host.Tuple{Local: at("[fd5e::7]:5000"), Remote: at(peer), Proto: sid.UDP}
	}
	first, second := ofSocket("[fd5c::1:1:2:3]:69"), ofSocket("[fd5c::1:1:2:3]:1069")
	before := host.Tuple{Local: at("[fd5e::7]:5001"), Remote: at("[fd5c::1:1:2:3]:0"), Proto: sid.UDP}
	e := &fakeEdge{flows: map[host.Tuple]*host.Flow{}, byID: map[sid.SocketID]host.Tuple{},
		answered: map[host.Tuple]host.Tuple{ofSocket("[fd5c::1:1:2:3]:50000"): second}}
	for i, x := range []host.Tuple{first, second, before} {
		e.add(&host.Flow{ID: sid.NewSocketID(uint64(i)), Role: host.Client, Proto: x.Proto, Local: x.Local, Peer: x.Remote, Tuple: x})
	}
	s := &flows{edge: e}
	for _, c := range []struct {
		local, peer string
		want        host.Tuple
	}{
		{"[fd5e::7]:5000", "[fd5c::1:1:2:3]:69", first},
		{"[::]:5000", "[fd5c::1:1:2:3]:1069", second},
		{"[fd5e::7]:5000", "[fd5c::1:1:2:3]:50000", second},
		{"[::]:5000", "[fd5c::1:1:2:3]:50000", second},
		{"[::]:5001", "[fd5c::1:1:2:3]:50000", before},
		{"[::]:5000", "[fd5c::1:1:2:3]:50001", host.Tuple{}},
		{"[::]:5002", "[fd5c::1:1:2:3]:69", host.Tuple{}},
	} {
		if f, ok := s.Seek(sid.UDP, at(c.local), at(c.peer)); f.Tuple != c.want || ok != (c.want != host.Tuple{}) {
			t.Errorf("%s > %s: %v %v, want %v", c.local, c.peer, f.Tuple, ok, c.want)
		}
	}
}
