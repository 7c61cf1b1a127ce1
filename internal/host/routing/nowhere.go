package routing

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

const (
	// lostTable takes what no uplink takes, but TCP.
	lostTable = table + 1
	// afterMain is a priority behind the kernel's own rules.
	afterMain = 1<<15 + table
	// last is a metric behind all others.
	last = 1 << 20
)

// nowhere is where packets go while no uplink is there. Datagrams are lost like others on their way: a program
// that sends one would else be told that the network is unreachable, and most end at that. The kernel's TCP
// is told. What it could not send it keeps, and sends when it is kicked; what it believes to have sent it sends
// again no sooner than a timeout after that. The uplinks' routes are in main, and the rules come behind it.
//
// A host without an uplink may be on its way from one to another, and connect() waits, as it does where a cable was pulled.
// Its first SYN, whose route is looked up without a source yet, takes the hole, too. The kernel answers by an error what
// comes there, which connect() does not heed while it sends (tcp_v6_err, sock_owned_by_user). The next SYN, a second
// later, has a source: without a route it is as if it were lost. It looks for one because the hole was made anew meanwhile,
// see Refresh; where it was not, the daemon being away, connect() ends by ENETUNREACH then.
func nowhere(space sid.Space, src netip.Addr, main, behind int) (all []Item) {
	for _, dst := range [...]netip.Prefix{space.AS, space.Services} {
		throw := route(netlink.Route{LinkIndex: lo, Dst: IPNet(dst), Priority: last, Table: main, Type: unix.RTN_THROW},
			fmt.Sprintf("route throw %v metric %d", dst, last))
		hole := route(netlink.Route{LinkIndex: lo, Dst: IPNet(dst), Src: src.AsSlice(), Priority: metric, MTU: 1280, Table: lostTable, Type: unix.RTN_UNICAST},
			fmt.Sprintf("route %v dev lo table %d", dst, lostTable))
		hole.again, hole.refreshed = true, true // connected sockets keep their route for as long as its own table does not change
		all = append(all, throw, hole)
	}
	connects := sending{priority: behind, proto: unix.IPPROTO_TCP, to: space.Services, table: lostTable}.item()
	connects.again = true // behind the one before it, which may have been put back: of the same priority, the older comes first
	return append(all,
		sending{priority: behind, proto: unix.IPPROTO_UDP, table: lostTable}.item(),
		sending{priority: behind, proto: unix.IPPROTO_ICMPV6, table: lostTable}.item(),
		sending{priority: behind, proto: unix.IPPROTO_TCP, from: whole(src)}.item(),
		connects)
}

// unreachable is what a VRF has for it: what its table does not take goes on to main, whose routes are others'. A datagram
// there is refused.
func unreachable(space sid.Space, table int) (all []Item) {
	for _, dst := range [...]netip.Prefix{space.AS, space.Services} {
		all = append(all, route(netlink.Route{LinkIndex: lo, Dst: IPNet(dst), Priority: last, Table: table, Type: unix.RTN_UNREACHABLE},
			fmt.Sprintf("route unreachable %v table %d metric %d", dst, table, last)))
	}
	return all
}
