package hostd

import (
	"syscall"

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

// downs are the interfaces that a message says are off, without carrier or gone.
func downs(messages []syscall.NetlinkMessage) map[int]bool {
	down := map[int]bool{}
	for _, m := range messages {
		if len(m.Data) < unix.SizeofIfInfomsg || m.Header.Type != unix.RTM_NEWLINK && m.Header.Type != unix.RTM_DELLINK {
			continue
		}
		info := nl.DeserializeIfInfomsg(m.Data)
		if m.Header.Type == unix.RTM_DELLINK || info.Flags&unix.IFF_LOWER_UP == 0 {
			down[int(info.Index)] = true
		}
	}
	return down
}
