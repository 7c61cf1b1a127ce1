package guests

import (
	"fmt"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/sid"
)

// firstOwn is the least port that the kernel gives by itself, unless it was told another: sockets that have one are
// clients' for the most part.
const firstOwn = 32768

// unserved says, for people, what listens on no address in particular in a guest that serves a name by such sockets,
// and is not reached by the name all the same: what takes IPv4 alone, and datagrams. It is a hint: what cannot be asked
// is left out.
func (x *guest) unserved() (all []string) {
	if !x.Address.IsValid() {
		return nil
	}
	reached := map[sid.Triple]bool{} // of protocol and port
	look := func(each func(sid.Proto, uint32, uint16, func(sockets.DiagSocket)) error, f func(sid.Proto, netip.AddrPort)) {
		each(sid.TCP, sockets.StateListen, 0, func(s sockets.DiagSocket) { f(sid.TCP, s.Local) }) //nolint:errcheck // see above
		each(sid.UDP, sockets.StateClose, 0, func(s sockets.DiagSocket) { f(sid.UDP, s.Local) })  //nolint:errcheck // see above
	}
	look(x.diag.Each, func(p sid.Proto, at netip.AddrPort) {
		if at.Addr() == x.Address || p == sid.TCP && at.Addr().IsUnspecified() {
			reached[sid.Triple{Proto: p, Port: at.Port()}] = true
		}
	})
	hint := func(p sid.Proto, at netip.AddrPort) {
		switch {
		case !at.Addr().IsUnspecified() || at.Port() >= firstOwn || reached[sid.Triple{Proto: p, Port: at.Port()}]:
		case p == sid.TCP:
			all = append(all, fmt.Sprintf("tcp/%d listens on IPv4 alone, and names lead to IPv6: have it listen on [::]", at.Port()))
		default:
			all = append(all, fmt.Sprintf("udp/%d answers from no address in particular, which clients would not know: have it bind %v", at.Port(), x.Address))
		}
	}
	look(x.diag.Each, hint)
	look(x.diag.EachIPv4, hint)
	slices.Sort(all)
	return slices.Compact(all)
}
