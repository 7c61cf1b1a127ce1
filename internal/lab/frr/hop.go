package frr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A Hop is a next hop object of rtnetlink, which routes name by its number.
type Hop struct {
	ID        uint32
	Blackhole bool
	Via       Via
	Group     []Member // of a group, which has no Via of its own
}

// A Member is a share in a group of next hop objects.
type Member struct {
	ID     uint32
	Weight int
}

// nhmsgLen is nhmsg's: family, scope, protocol, reserved, then 4 bytes of flags
// (include/uapi/linux/nexthop.h).
const nhmsgLen = 8

func parseHop(b []byte) (*Hop, error) {
	if len(b) < nhmsgLen {
		return nil, fmt.Errorf("next hop of %d bytes, want at least %d", len(b), nhmsgLen)
	}
	h := &Hop{Via: Via{Weight: 1}}
	if err := attrs(b[nhmsgLen:], h.attr); err != nil {
		return nil, err
	}
	if h.ID == 0 {
		return nil, fmt.Errorf("next hop without a number")
	}
	return h, nil
}

func (h *Hop) attr(typ uint16, v []byte) (err error) {
	switch typ {
	case unix.NHA_ID:
		h.ID, err = number(v)
	case unix.NHA_OIF:
		var n uint32
		n, err = number(v)
		h.Via.Index = int(n)
	case unix.NHA_GATEWAY:
		h.Via.Gateway, err = address(v)
	case unix.NHA_BLACKHOLE:
		h.Blackhole = true
	case unix.NHA_GROUP:
		h.Group, err = parseGroup(v)
	}
	return err
}

// memberLen is nexthop_grp's: 4 bytes of number, weight less one, 3 reserved.
const memberLen = 8

func parseGroup(b []byte) (group []Member, err error) {
	if len(b)%memberLen != 0 {
		return nil, fmt.Errorf("group of next hops has %d bytes, want a multiple of %d", len(b), memberLen)
	}
	for ; len(b) > 0; b = b[memberLen:] {
		group = append(group, Member{ID: native.Uint32(b), Weight: int(b[4]) + 1})
	}
	return group, nil
}
