package hostd

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
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
// again no sooner than a timeout after that.
func nowhere(space sid.Space, src netip.Addr) (all []item) {
	for _, dst := range [...]netip.Prefix{space.AS, space.Services} {
		throw := route(netlink.Route{LinkIndex: lo, Dst: ipNet(dst), Priority: last, Table: unix.RT_TABLE_MAIN, Type: unix.RTN_THROW},
			fmt.Sprintf("route throw %v metric %d", dst, last))
		hole := route(netlink.Route{LinkIndex: lo, Dst: ipNet(dst), Src: src.AsSlice(), Priority: metric, MTU: 1280, Table: lostTable, Type: unix.RTN_UNICAST},
			fmt.Sprintf("route %v dev lo table %d", dst, lostTable))
		hole.again = true // connected sockets keep their route for as long as its own table does not change
		all = append(all, throw, hole)
	}
	return append(all, loses(unix.IPPROTO_UDP, "udp"), loses(unix.IPPROTO_ICMPV6, "ipv6-icmp"))
}

// loses is the rule that takes the local packets of a protocol that no other took.
func loses(proto uint8, called string) item {
	name := fmt.Sprintf("rule iif lo ipproto %s lookup %d", called, lostTable)
	change := func(what, flags int) error {
		req := nl.NewNetlinkRequest(what, unix.NLM_F_ACK|flags)
		msg := nl.NewRtMsg()
		msg.Family, msg.Type = unix.AF_INET6, unix.FR_ACT_TO_TBL
		req.AddData(msg)
		req.AddData(nl.NewRtAttr(nl.FRA_PRIORITY, nl.Uint32Attr(afterMain)))
		req.AddData(nl.NewRtAttr(nl.FRA_TABLE, nl.Uint32Attr(lostTable)))
		req.AddData(nl.NewRtAttr(nl.FRA_IIFNAME, nl.ZeroTerminated("lo")))
		req.AddData(nl.NewRtAttr(nl.FRA_IP_PROTO, []byte{proto})) // one byte: package netlink makes it four
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	}
	return item{
		name: name,
		key:  name,
		present: func(v *kernelView) (bool, error) {
			return v.hasRule(func(o netlink.Rule) bool {
				return o.Table == lostTable && o.IifName == "lo" && uint8(o.IPProto) == proto
			})
		},
		add:    func() error { return change(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL) },
		remove: func() error { return change(unix.RTM_DELRULE, 0) },
	}
}
