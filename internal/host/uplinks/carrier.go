package uplinks

import (
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// carrierTurns is how often an interface's carrier came or went. The kernel tells of carriers at most once
// a second, and nothing of one that went and came between: the link may lead elsewhere since.
func carrierTurns(index int) uint32 {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_ACK)
	info := nl.NewIfInfomsg(unix.AF_UNSPEC)
	info.Index = int32(index)
	req.AddData(info)
	answers, err := req.Execute(unix.NETLINK_ROUTE, 0)
	if err != nil || len(answers) == 0 {
		return 0
	}
	return turnsIn(answers[0])
}

// turnsIn reads the count from what follows the header of RTM_NEWLINK.
func turnsIn(message []byte) uint32 {
	if len(message) < unix.SizeofIfInfomsg {
		return 0
	}
	attrs, err := nl.ParseRouteAttr(message[unix.SizeofIfInfomsg:])
	if err != nil {
		return 0
	}
	for _, a := range attrs {
		if a.Attr.Type == unix.IFLA_CARRIER_CHANGES && len(a.Value) >= 4 {
			return nl.NativeEndian().Uint32(a.Value)
		}
	}
	return 0
}
