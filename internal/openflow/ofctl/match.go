package ofctl

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// Ports are how ports are called.
type Ports map[string]ofp.Port

// maxText is the longest text that is read, in bytes.
const maxText = 1024

// shorthands are words for what packets are.
var shorthands = map[string]ofp.Match{
	"ip":    {ofp.Uint(ofp.EthType, typeIPv4)},
	"ipv6":  {ofp.Uint(ofp.EthType, typeIPv6)},
	"arp":   {ofp.Uint(ofp.EthType, typeARP)},
	"tcp":   {ofp.Uint(ofp.EthType, typeIPv4), ofp.Uint(ofp.IPProto, protoTCP)},
	"tcp6":  {ofp.Uint(ofp.EthType, typeIPv6), ofp.Uint(ofp.IPProto, protoTCP)},
	"udp":   {ofp.Uint(ofp.EthType, typeIPv4), ofp.Uint(ofp.IPProto, protoUDP)},
	"udp6":  {ofp.Uint(ofp.EthType, typeIPv6), ofp.Uint(ofp.IPProto, protoUDP)},
	"icmp":  {ofp.Uint(ofp.EthType, typeIPv4), ofp.Uint(ofp.IPProto, protoICMP)},
	"icmp6": {ofp.Uint(ofp.EthType, typeIPv6), ofp.Uint(ofp.IPProto, protoICMP6)},
	"sctp":  {ofp.Uint(ofp.EthType, typeIPv4), ofp.Uint(ofp.IPProto, protoSCTP)},
	"sctp6": {ofp.Uint(ofp.EthType, typeIPv6), ofp.Uint(ofp.IPProto, protoSCTP)},
}

// aliases are older names of fields.
var aliases = map[string]string{
	"dl_type": "eth_type", "dl_src": "eth_src", "dl_dst": "eth_dst", "dl_vlan_pcp": "vlan_pcp",
	"nw_src": "ip_src", "nw_dst": "ip_dst", "nw_proto": "ip_proto", "nw_ecn": "ip_ecn", "ip_ttl": "nw_ttl",
}

// ParseMatch reads a match; "any", or nothing, matches all packets.
func ParseMatch(text string, ports Ports) (ofp.Match, error) {
	m, err := parseMatch(text, ports)
	if err == nil {
		m, err = complete(m)
	}
	if err != nil {
		return nil, fmt.Errorf("match %.80q: %w", text, err)
	}
	return m, nil
}

func parseMatch(text string, ports Ports) (m ofp.Match, err error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("%d characters: at most %d", len(text), maxText)
	}
	if text = strings.TrimSpace(text); text == "" || text == "any" {
		return nil, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		fields, err := parseWord(strings.TrimSpace(word), ports)
		if err != nil {
			return nil, err
		}
		for _, o := range fields {
			had, twice := m.Get(o.Field)
			if twice && had != o {
				return nil, fmt.Errorf("%v is said twice: %v and %v", o.Field, had, o)
			}
			if !twice {
				m = append(m, o)
			}
		}
	}
	return m, nil
}

func parseWord(word string, ports Ports) (ofp.Match, error) {
	name, value, is := strings.Cut(word, "=")
	if short, ok := shorthands[name]; ok && !is {
		return short, nil
	}
	if !is {
		return nil, fmt.Errorf("%.40q: want FIELD=VALUE, or one of ip, ipv6, arp, tcp, tcp6, udp, udp6, icmp, icmp6", word)
	}
	if name == "dl_vlan" {
		vid, err := strconv.ParseUint(value, 0, 12)
		if err != nil {
			return nil, fmt.Errorf("dl_vlan=%.40s: want a VLAN's number, 0 to 4095", value)
		}
		return ofp.Match{ofp.Uint(ofp.VLANVID, vid|ofp.VLANPresent)}, nil
	}
	f, err := parseField(name)
	if err != nil {
		return nil, err
	}
	o, err := parseValue(f, value, ports)
	return ofp.Match{o}, err
}

func parseField(name string) (ofp.Field, error) {
	if longer, ok := aliases[name]; ok {
		name = longer
	}
	f, ok := ofp.FieldNamed(name)
	if !ok {
		return 0, fmt.Errorf("%.40q is no field: want for instance in_port, eth_src, eth_type, vlan_vid, ip_proto, ipv6_src, ipv6_dst, tcp_dst or udp_dst", name)
	}
	return f, nil
}

// parseValue reads VALUE or VALUE/MASK in the form of the field.
func parseValue(f ofp.Field, text string, ports Ports) (o ofp.OXM, err error) {
	value, mask, masked := strings.Cut(text, "/")
	b, err := parseBytes(f, value, ports)
	if err != nil || !masked {
		return ofp.Bytes(f, orZero(b, f), nil), err
	}
	var bits []byte
	if n, numeric := strconv.Atoi(mask); numeric == nil && isAddress(f) {
		if n < 0 || n > 8*f.Size() {
			return o, fmt.Errorf("%v=%.60s: a prefix of %s bits", f, text, mask)
		}
		a, _ := netip.AddrFromSlice(b)
		return ofp.Prefix(f, netip.PrefixFrom(a, n)), nil
	}
	if bits, err = parseBytes(f, mask, nil); err != nil {
		return o, err
	}
	all := true
	for i := range b {
		b[i] &= bits[i]
		all = all && bits[i] == 0xff
	}
	if all {
		bits = nil
	}
	return ofp.Bytes(f, b, bits), nil
}

func orZero(b []byte, f ofp.Field) []byte {
	if b == nil {
		return make([]byte, f.Size())
	}
	return b
}

// parseBytes reads one value; nil ports: none has a name here.
func parseBytes(f ofp.Field, text string, ports Ports) ([]byte, error) {
	switch {
	case isAddress(f):
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" || len(a.AsSlice()) != f.Size() {
			return nil, fmt.Errorf("%v=%.60s: want an address of %d bytes", f, text, f.Size())
		}
		return a.AsSlice(), nil
	case isHardware(f):
		m, err := parseMAC(text)
		if err != nil {
			return nil, fmt.Errorf("%v=%.60s: want a hardware address as 02:00:00:00:00:01", f, text)
		}
		return m, nil
	case f == ofp.InPort && ports != nil:
		p, err := ports.parse(text)
		if err != nil {
			return nil, err
		}
		return ofp.Uint(f, uint64(p)).Value(), nil
	}
	v, err := strconv.ParseUint(text, 0, 64)
	if err != nil || f.Size() < 8 && v>>(8*f.Size()) != 0 {
		return nil, fmt.Errorf("%v=%.60s: want a number that fits into %d bytes, as 80 or 0x50", f, text, f.Size())
	}
	return ofp.Uint(f, v).Value(), nil
}

func isAddress(f ofp.Field) bool {
	switch f {
	case ofp.IPv4Src, ofp.IPv4Dst, ofp.ARPSPA, ofp.ARPTPA, ofp.IPv6Src, ofp.IPv6Dst, ofp.NDTarget,
		ofp.TunIPv4Src, ofp.TunIPv4Dst, ofp.TunIPv6Src, ofp.TunIPv6Dst:
		return true
	}
	return false
}

func isHardware(f ofp.Field) bool { return f.Size() == 6 }

func parseMAC(text string) ([]byte, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 6 {
		return nil, strconv.ErrSyntax
	}
	b := make([]byte, 6)
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 16, 8)
		if err != nil || len(p) > 2 {
			return nil, strconv.ErrSyntax
		}
		b[i] = byte(v)
	}
	return b, nil
}
