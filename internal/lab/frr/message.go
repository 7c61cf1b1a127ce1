package frr

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// A Message is one netlink message about a route or a next hop object; others are left out by Parse.
type Message struct {
	Delete bool
	Route  *Route // one of the two
	Hop    *Hop
}

// A Route is the content of RTM_NEWROUTE and RTM_DELROUTE. Its ways are in Via, or in the next hop object
// that HopID names, or in both.
type Route struct {
	Prefix   netip.Prefix
	Kind     Kind
	Protocol uint8
	Table    uint32 // unix.RT_TABLE_MAIN and others
	Metric   uint32
	HopID    uint32 // 0: none
	Via      []Via
	special  bool // of a kind that says nothing of forwarding: local, multicast, or by source
}

// headerLen is nlmsghdr's: 4 length, 2 type, 2 flags, 4 sequence number, 4 port.
const headerLen = 16

// Parse appends the messages about routes and next hops in b, which holds whole netlink messages.
func Parse(dst []Message, b []byte) ([]Message, error) {
	for len(b) > 0 {
		typ, body, size, err := cut(b)
		if err != nil {
			return dst, err
		}
		m, ok, err := parseOne(typ, body)
		if err != nil {
			return dst, fmt.Errorf("netlink message of type %d: %w", typ, err)
		}
		if ok {
			dst = append(dst, m)
		}
		b = b[size:]
	}
	return dst, nil
}

// cut takes the first message off b; size is what it takes of b with its padding.
func cut(b []byte) (typ uint16, body []byte, size int, err error) {
	if len(b) < headerLen {
		return 0, nil, 0, fmt.Errorf("netlink header needs %d bytes, %d are left", headerLen, len(b))
	}
	n := native.Uint32(b)
	if n < headerLen || uint64(n) > uint64(len(b)) {
		return 0, nil, 0, fmt.Errorf("netlink message of %d bytes where %d are left", n, len(b))
	}
	return native.Uint16(b[4:]), b[headerLen:n], min(align(int(n)), len(b)), nil
}

func parseOne(typ uint16, body []byte) (m Message, ok bool, err error) {
	switch typ {
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		r, err := parseRoute(body)
		return Message{Delete: typ == unix.RTM_DELROUTE, Route: r}, r != nil, err
	case unix.RTM_NEWNEXTHOP, unix.RTM_DELNEXTHOP:
		h, err := parseHop(body)
		return Message{Delete: typ == unix.RTM_DELNEXTHOP, Hop: h}, h != nil, err
	}
	return m, false, nil
}
