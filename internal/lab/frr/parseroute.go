package frr

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// rtmsgLen is rtmsg's: family, length of destination and of source, TOS, table, protocol, scope, type, then
// 4 bytes of flags (include/uapi/linux/rtnetlink.h).
const rtmsgLen = 12

// rtaNexthop is RTA_NH_ID, which package unix lacks.
const rtaNexthop = 30

var routeKinds = map[uint8]Kind{
	unix.RTN_UNSPEC:  Unicast, // of RTM_DELROUTE: whatever it was
	unix.RTN_UNICAST: Unicast, unix.RTN_BLACKHOLE: Blackhole,
	unix.RTN_UNREACHABLE: Unreachable, unix.RTN_PROHIBIT: Prohibited,
}

// parseRoute is nil for the families that are not IP, such as MPLS, and for entries of the kernel's cache.
func parseRoute(b []byte) (*Route, error) {
	if len(b) < rtmsgLen {
		return nil, fmt.Errorf("route of %d bytes, want at least %d", len(b), rtmsgLen)
	}
	zero, ok := unspecified(b[0])
	if !ok || native.Uint32(b[8:])&unix.RTM_F_CLONED != 0 {
		return nil, nil
	}
	kind, known := routeKinds[b[7]]
	r := &Route{Kind: kind, Table: uint32(b[4]), Protocol: b[5], special: !known || b[2] != 0}
	w := way{flags: native.Uint32(b[8:])}
	dst := zero
	err := attrs(b[rtmsgLen:], func(typ uint16, v []byte) (err error) {
		if typ == unix.RTA_DST {
			dst, err = address(v)
			return err
		}
		return r.attr(&w, typ, v)
	})
	if err != nil {
		return nil, err
	}
	if w.known() && len(r.Via) == 0 {
		r.Via = w.append(r.Via)
	}
	r.Prefix = netip.PrefixFrom(dst, int(b[1])).Masked()
	if !r.Prefix.IsValid() || dst.Is4() != zero.Is4() {
		return nil, fmt.Errorf("prefix %v/%d does not fit address family %d", dst, b[1], b[0])
	}
	return r, nil
}

// unspecified is the address of the default route of a family.
func unspecified(family uint8) (netip.Addr, bool) {
	switch family {
	case unix.AF_INET:
		return netip.IPv4Unspecified(), true
	case unix.AF_INET6:
		return netip.IPv6Unspecified(), true
	}
	return netip.Addr{}, false
}

func (r *Route) attr(w *way, typ uint16, v []byte) (err error) {
	switch typ {
	case unix.RTA_TABLE:
		r.Table, err = number(v)
	case unix.RTA_PRIORITY:
		r.Metric, err = number(v)
	case rtaNexthop:
		r.HopID, err = number(v)
	case unix.RTA_MULTIPATH:
		r.Via, err = parseMultipath(v)
	default:
		err = w.attr(typ, v)
	}
	return err
}

// A way collects what one next hop's attributes say.
type way struct {
	via   Via
	flags uint32
}

func (w *way) attr(typ uint16, v []byte) (err error) {
	switch typ {
	case unix.RTA_OIF:
		var n uint32
		n, err = number(v)
		w.via.Index = int(n)
	case unix.RTA_GATEWAY:
		w.via.Gateway, err = address(v)
	case unix.RTA_VIA:
		w.via.Gateway, err = viaAddress(v)
	}
	return err
}

func (w *way) known() bool { return w.via.Index != 0 || w.via.Gateway.IsValid() }

// append leaves out a way that the kernel knows to be dead.
func (w *way) append(dst []Via) []Via {
	if w.flags&unix.RTNH_F_DEAD != 0 {
		return dst
	}
	w.via.Weight = max(w.via.Weight, 1)
	return append(dst, w.via)
}

// rtnexthopLen is rtnexthop's: 2 bytes of length, flags, weight less one, 4 bytes of interface index.
const rtnexthopLen = 8

func parseMultipath(b []byte) (via []Via, err error) {
	for len(b) > 0 {
		if len(b) < rtnexthopLen {
			return nil, errors.New("next hop of a multipath route is cut off")
		}
		size := int(native.Uint16(b))
		if size < rtnexthopLen || size > len(b) {
			return nil, fmt.Errorf("next hop of %d bytes in a multipath route where %d are left", size, len(b))
		}
		w := way{flags: uint32(b[2]), via: Via{Weight: int(b[3]) + 1, Index: int(native.Uint32(b[4:]))}}
		if err := attrs(b[rtnexthopLen:size], w.attr); err != nil {
			return nil, err
		}
		via = w.append(via)
		b = b[min(align(size), len(b)):]
	}
	return via, nil
}
