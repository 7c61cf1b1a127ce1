package sid

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Widths in bits of the parts of an address, docs/protocol.md §2.1. They stand here and in
// internal/bpf/include/abi.h only.
const (
	ServicePrefixBits = 32
	SSBits            = 32
	SuffixBits        = 64
	ASBits            = 48
	HostBits          = 16
	LocatorBits       = ASBits + HostBits
)

// ReservedSuffixes is the first suffix that a service may have; the ones below name hosts (::1) and
// are kept for later use.
const ReservedSuffixes = 1 << 16

// socketBit is set in every SocketID and clear in every Suffix, so that the two share the low half
// of an address.
const socketBit = 1 << 63

// HostSuffix is the low half of a host's own address, <locator>::1.
const HostSuffix = 1

// Port is the UDP port of Scaffold's own messages between hosts and routers, docs/protocol.md §4.
const Port = 23727

// A Suffix is the part of a serviceID that reaches the host: 64 bits, the top one clear.
type Suffix uint64

// Valid reports whether a service may have the suffix.
func (s Suffix) Valid() bool { return s >= ReservedSuffixes && s&socketBit == 0 }

func (s Suffix) String() string { return fmt.Sprintf("%016x", uint64(s)) }

// A ServiceID names a group of interchangeable instances: SS is the service system that owns the name.
type ServiceID struct {
	SS     uint32
	Suffix Suffix
}

// Valid reports whether the serviceID may be assigned.
func (id ServiceID) Valid() bool { return id.SS != 0 && id.Suffix.Valid() }

// String gives the form that ParseServiceID reads: 8 and 16 hexadecimal digits joined by a dash.
func (id ServiceID) String() string { return fmt.Sprintf("%08x-%016x", id.SS, uint64(id.Suffix)) }

// ParseServiceID reads the form that String writes.
func ParseServiceID(s string) (ServiceID, error) {
	ss, suffix, ok := strings.Cut(s, "-")
	if !ok || len(ss) != 8 || len(suffix) != 16 {
		return ServiceID{}, fmt.Errorf("serviceID %q: want 8 and 16 hexadecimal digits joined by a dash, as in 00000001-00c0ffee00c0ffee", s)
	}
	a, err1 := strconv.ParseUint(ss, 16, 32)
	b, err2 := strconv.ParseUint(suffix, 16, 64)
	if err1 != nil || err2 != nil {
		return ServiceID{}, fmt.Errorf("serviceID %q: not hexadecimal", s)
	}
	id := ServiceID{SS: uint32(a), Suffix: Suffix(b)}
	if !id.Valid() {
		return ServiceID{}, fmt.Errorf("serviceID %q: ssID 0 and suffixes below %#x or with the top bit set are reserved", s, ReservedSuffixes)
	}
	return id, nil
}

// A Locator says where: the upper 64 bits of every address of one attachment point. A host owns the whole /64.
type Locator uint64

// LocatorOf returns the upper half of addr.
func LocatorOf(addr netip.Addr) Locator {
	b := addr.As16()
	return Locator(binary.BigEndian.Uint64(b[:8]))
}

// Addr is the address in the locator's /64 with the given lower half.
func (l Locator) Addr(low uint64) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(l))
	binary.BigEndian.PutUint64(b[8:], low)
	return netip.AddrFrom16(b)
}

// Host is the host's own address at this locator, for its daemon and for ordinary traffic.
func (l Locator) Host() netip.Addr { return l.Addr(HostSuffix) }

// Prefix is the /64 that the locator owns.
func (l Locator) Prefix() netip.Prefix { return netip.PrefixFrom(l.Addr(0), LocatorBits) }

// HostAddr is the part of the locator that is assigned inside its AS; 0 stands for "no host chosen yet".
func (l Locator) HostAddr() uint16 { return uint16(l) }

func (l Locator) String() string { return l.Prefix().String() }

// A SocketID says which connection, at one end, in one place: top bit 1, 63 unpredictable bits.
type SocketID uint64

// Valid reports whether the top bit is set.
func (s SocketID) Valid() bool { return s&socketBit != 0 }

// NewSocketID makes a SocketID of 63 random bits.
func NewSocketID(random uint64) SocketID { return SocketID(random | socketBit) }

func (s SocketID) String() string { return fmt.Sprintf("%016x", uint64(s)) }

// Low is the lower half of addr, which holds a Suffix or a SocketID.
func Low(addr netip.Addr) uint64 {
	b := addr.As16()
	return binary.BigEndian.Uint64(b[8:])
}

// Proto is an IP protocol number.
type Proto uint8

// The protocols that services have instances on.
const (
	TCP    Proto = 6
	UDP    Proto = 17
	ICMPv6 Proto = 58
)

func (p Proto) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case ICMPv6:
		return "icmpv6"
	}
	return strconv.Itoa(int(p))
}

// ParseProto reads "tcp" or "udp".
func ParseProto(s string) (Proto, error) {
	switch s {
	case "tcp":
		return TCP, nil
	case "udp":
		return UDP, nil
	}
	return 0, fmt.Errorf("protocol %q: want tcp or udp", s)
}

// A Triple is what registers, resolves and is refused: one port of one service.
type Triple struct {
	Service ServiceID
	Proto   Proto
	Port    uint16 // host order
}

func (t Triple) String() string { return fmt.Sprintf("%v %v/%d", t.Service, t.Proto, t.Port) }
