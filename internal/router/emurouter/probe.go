package emurouter

import (
	"net/netip"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/packet/header"
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
	p.found(changes)
	return p.every
}

// found tells what the probes say, and has first packets pass hosts by that do not answer, without waiting for the
// controller to say so. A router that resolves nothing does not know whether anybody else serves: it waits until a host is
// gone.
func (p *path) found(changes []liveness.Change) {
	for _, c := range changes {
		p.answers.SetSilent(c.Locator, c.State == liveness.Gone || c.State == liveness.Suspect && p.cfg.Service)
	}
	if changes != nil {
		p.mail.put(event{hosts: changes})
	}
}

// watchPorts tells of ports that came up or went down.
func (p *path) watchPorts(r *emu.Router) {
	for i, port := range r.Ports() {
		if i >= len(p.up) {
			break
		}
		if up := port.Up(); up != p.up[i] || !p.told {
			p.up[i] = up
			p.found(p.probes.Carrier(p.cfg.Ports[i].Name, up))
			p.mail.put(event{carrier: true, port: i, up: up})
		}
	}
	p.told = true
}

// mostHops tells that a message comes from no farther than it says.
const mostHops = 255

// datagram is a packet with a message of the protocol.
func datagram(src, dst netip.Addr, body []byte) []byte {
	return header.AppendDatagram(nil, netip.AddrPortFrom(src, sid.Port), netip.AddrPortFrom(dst, sid.Port), mostHops, body)
}

// message finds a message of the protocol in a packet.
func message(ip []byte) (src netip.Addr, body []byte, ok bool) {
	from, to, body, ok := header.Datagram(ip)
	return from.Addr(), body, ok && to.Port() == sid.Port
}
