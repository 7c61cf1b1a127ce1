package routing

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A sending is a rule for packets that begin on this machine. Package netlink knows no rules that end a lookup, and
// writes a protocol of one byte in four.
type sending struct {
	priority int
	proto    uint8        // 0 for all
	from, to netip.Prefix // not valid for all
	table    int          // 0: the destination is unreachable
}

func (s sending) String() string {
	var text strings.Builder
	text.WriteString("rule iif lo")
	if s.from.IsValid() {
		fmt.Fprintf(&text, " from %v", s.from)
	}
	if s.to.IsValid() {
		fmt.Fprintf(&text, " to %v", s.to)
	}
	if s.proto != 0 {
		fmt.Fprintf(&text, " ipproto %s", map[uint8]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp", unix.IPPROTO_ICMPV6: "ipv6-icmp"}[s.proto])
	}
	if s.table == 0 {
		return text.String() + " unreachable"
	}
	return fmt.Sprintf("%s lookup %d", text.String(), s.table)
}

func (s sending) item() Item {
	return Item{
		name: s.String(),
		key:  fmt.Sprint(s, s.priority),
		present: func(v *view) (bool, error) {
			return v.hasRule(func(o netlink.Rule) bool { return o.IifName == "lo" && sendingOf(&o) == s })
		},
		add: func() error {
			err := s.change(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
			if errors.Is(err, unix.EEXIST) { // it is to come behind others
				err = errors.Join(s.change(unix.RTM_DELRULE, 0), s.change(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL))
			}
			return err
		},
		remove: func() error { return s.change(unix.RTM_DELRULE, 0) },
	}
}

// sendingOf is one that the kernel has.
func sendingOf(r *netlink.Rule) sending {
	s := sending{priority: r.Priority, proto: uint8(r.IPProto), table: max(r.Table, 0)} //nolint:gosec // one byte in the kernel, too
	for to, n := range map[*netip.Prefix]*net.IPNet{&s.from: r.Src, &s.to: r.Dst} {
		if n != nil {
			a, _ := netip.AddrFromSlice(n.IP)
			ones, _ := n.Mask.Size()
			*to = netip.PrefixFrom(a, ones)
		}
	}
	return s
}

func (s sending) change(what, flags int) error {
	req := nl.NewNetlinkRequest(what, unix.NLM_F_ACK|flags)
	msg := nl.NewRtMsg()
	msg.Family, msg.Type, msg.Table = unix.AF_INET6, unix.FR_ACT_TO_TBL, unix.RT_TABLE_UNSPEC
	if s.table == 0 {
		msg.Type = unix.FR_ACT_UNREACHABLE
	}
	if s.from.IsValid() {
		msg.Src_len = uint8(s.from.Bits())
	}
	if s.to.IsValid() {
		msg.Dst_len = uint8(s.to.Bits())
	}
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(nl.FRA_PRIORITY, nl.Uint32Attr(uint32(s.priority))))
	req.AddData(nl.NewRtAttr(nl.FRA_IIFNAME, nl.ZeroTerminated("lo")))
	if s.proto != 0 {
		req.AddData(nl.NewRtAttr(nl.FRA_IP_PROTO, []byte{s.proto}))
	}
	if s.from.IsValid() {
		req.AddData(nl.NewRtAttr(nl.FRA_SRC, s.from.Addr().AsSlice()))
	}
	if s.to.IsValid() {
		req.AddData(nl.NewRtAttr(nl.FRA_DST, s.to.Addr().AsSlice()))
	}
	if s.table != 0 {
		req.AddData(nl.NewRtAttr(nl.FRA_TABLE, nl.Uint32Attr(uint32(s.table))))
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
