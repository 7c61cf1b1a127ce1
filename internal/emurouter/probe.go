package emurouter

import (
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/checksum"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// probe sends a round of probes, docs/protocol.md §5.3, and says when the next is due. What hosts answered is taken
// between two rounds by the same thread, so that a machine that stands still accuses nobody.
func (p *path) probe(r *emu.Router) (wait time.Duration) {
	if p.own == 0 || p.probes.Len() == 0 {
		return p.every
	}
	changes := p.probes.Turn(func(l sid.Locator, nonce uint64) {
		ip := datagram(p.own.Host(), l.Host(), wire.Probe{Header: wire.Header{Nonce: nonce}}.Append(nil))
		if one, ok := r.New(ip); ok {
			p.send(r, one)
		}
	})
	if changes != nil {
		p.mail.put(event{hosts: changes})
	}
	return p.every
}

// watchPorts tells of ports that came up or went down.
func (p *path) watchPorts(r *emu.Router) {
	for i, port := range r.Ports() {
		if i >= len(p.up) {
			break
		}
		if up := port.Up(); up != p.up[i] || !p.told {
			p.up[i] = up
			if changes := p.probes.Carrier(p.cfg.Ports[i].Name, up); changes != nil {
				p.mail.put(event{hosts: changes})
			}
			p.mail.put(event{carrier: true, port: i, up: up})
		}
	}
	p.told = true
}

// Lengths of headers.
const (
	ipv6Len  = 40
	udpLen   = 8
	protoUDP = 17
	mostHops = 255
)

// datagram is a packet with a message of the protocol.
func datagram(src, dst netip.Addr, body []byte) []byte {
	ip := make([]byte, ipv6Len+udpLen, ipv6Len+udpLen+len(body))
	ip = append(ip, body...)
	ip[0], ip[6], ip[7] = 6<<4, protoUDP, mostHops
	binary.BigEndian.PutUint16(ip[4:], uint16(udpLen+len(body)))
	copy(ip[8:], src.AsSlice())
	copy(ip[24:], dst.AsSlice())
	udp := ip[ipv6Len:]
	binary.BigEndian.PutUint16(udp[0:], sid.Port)
	binary.BigEndian.PutUint16(udp[2:], sid.Port)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	checksum.Put6(ip, ipv6Len, ipv6Len+6, protoUDP)
	return ip
}

// message finds a message of the protocol in a packet. Its checksum is not looked at: between interfaces of one
// machine it may not have been made yet.
func message(ip []byte) (src netip.Addr, body []byte, ok bool) {
	if len(ip) < ipv6Len+udpLen || ip[6] != protoUDP {
		return src, nil, false
	}
	udp := ip[ipv6Len:]
	n := int(binary.BigEndian.Uint16(udp[4:]))
	if binary.BigEndian.Uint16(udp[2:]) != sid.Port || n < udpLen || n > len(udp) {
		return src, nil, false
	}
	return netip.AddrFrom16([16]byte(ip[8:24])), udp[udpLen:n], true
}
