package switchd

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/wire"
)

// A Link is a switch's way to a router that it cannot hear: behind one that knows nothing of Scaffold.
type Link struct {
	Switch, Port, Peer string
	Via                netip.Addr // the plain router's, on the port's link
}

// ParseLink reads switch=NAME,peer=NAME,port=PORT,via=ADDRESS.
func ParseLink(text string) (l Link, err error) {
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "switch":
			l.Switch = value
		case "peer":
			l.Peer = value
		case "port":
			l.Port = value
		case "via":
			if l.Via, err = netip.ParseAddr(value); err != nil || !l.Via.Is6() || l.Via.Is4In6() || l.Via.IsMulticast() || l.Via.Zone() != "" {
				return l, fmt.Errorf("link %q: via %q is no IPv6 address of a router", text, value)
			}
		default:
			return l, fmt.Errorf("link %q: %q is none of switch, peer, port, via", text, key)
		}
	}
	if checkName(l.Switch) != nil || checkName(l.Peer) != nil || l.Port == "" || len(l.Port) > wire.MaxName || !l.Via.IsValid() {
		return l, fmt.Errorf("link %q: want switch=NAME,peer=NAME,port=PORT,via=ADDRESS", text)
	}
	return l, nil
}

// A distant module tells of the links of Config: it finds the hardware address of the plain router, and
// asks again and again whether that is still there. Who is behind it, it believes.
type distant struct {
	n     controller.Network
	links map[string][]*distantLink // by switch
	known map[string]controller.Switch
}

type distantLink struct {
	Link
	mac    [6]byte // zero until the plain router answered
	missed int     // questions since its last answer
}

// How often the plain router is asked; missedMost questions may go unanswered.
const distantEvery = time.Second

func newDistant(links []Link) *distant {
	d := &distant{links: map[string][]*distantLink{}, known: map[string]controller.Switch{}}
	for _, l := range links {
		d.links[l.Switch] = append(d.links[l.Switch], &distantLink{Link: l})
	}
	return d
}

// Name implements controller.Module.
func (*distant) Name() string { return "distant-links" }

// Start implements controller.Module.
func (d *distant) Start(n controller.Network) error {
	d.n = n
	n.HandleSwitches(d.changed)
	n.Every(distantEvery, d.tick)
	return nil
}

func (d *distant) changed(s controller.Switch) {
	if len(d.links[s.Name]) == 0 {
		return
	}
	was, known := d.known[s.Name]
	d.known[s.Name] = s
	if !s.Up {
		delete(d.known, s.Name)
		return // what was said of its links stays: it forwards on
	}
	if !known || was.LinkLocal != s.LinkLocal {
		replies := controller.Match{ofp.Uint(ofp.EthType, header.EtherIPv6), ofp.Uint(ofp.IPProto, header.ICMPv6),
			ofp.Addr(ofp.IPv6Dst, s.LinkLocal), ofp.Uint(ofp.ICMPv6Type, advertised)}
		if err := d.n.Subscribe(controller.Subscription{Name: "nd-answer", Switch: s.Name, Match: replies}, d.heard); err != nil {
			d.n.Report(s.Name, "links behind other routers are not known here: "+err.Error())
		}
	}
	for _, l := range d.links[s.Name] {
		if wasUp(s, l.Port) && !wasUp(was, l.Port) {
			d.ask(s, l)
		}
	}
}

func (d *distant) tick() {
	for _, s := range d.known {
		for _, l := range d.links[s.Name] {
			if l.missed++; l.missed == missedMost+1 && l.mac != [6]byte{} {
				d.tell(s.Name)
			}
			d.ask(s, l)
		}
	}
}

// ask sends a neighbour solicitation for the plain router; the next is due in a second.
func (d *distant) ask(s controller.Switch, l *distantLink) {
	for _, p := range s.Ports {
		if p.Name == l.Port && p.Up {
			out := controller.Out{Actions: []controller.Action{controller.Output{Port: p.Number}}, Data: solicitation(s.MAC, s.LinkLocal, l.Via)}
			d.n.Send(s.Name, out) //nolint:errcheck // the next is due in a second
		}
	}
}

// heard takes a neighbour advertisement.
func (d *distant) heard(p controller.Packet) {
	target, ok := advertisedTarget(p.Data)
	if !ok {
		return
	}
	fresh := false
	for _, l := range d.links[p.Switch] {
		if l.Port != p.Port || l.Via != target {
			continue
		}
		mac := [6]byte(p.Data[6:12])
		fresh = fresh || l.mac != mac || l.missed > missedMost
		l.mac, l.missed = mac, 0
	}
	if fresh {
		d.tell(p.Switch)
	}
}

func (d *distant) tell(at string) {
	var links []controller.Link
	for _, l := range d.links[at] {
		if l.mac == [6]byte{} {
			continue
		}
		x := controller.Link{Router: at, Port: l.Port, Peer: l.Peer, Via: l.Via, MAC: l.mac, Up: l.missed <= missedMost, Cost: 1}
		if !x.Up {
			x.Reason = "hello"
		}
		links = append(links, x)
	}
	d.n.SetLinks(at, links) //nolint:errcheck // of a switch that has gone it is kept
}

// Neighbour discovery, RFC 4861 §4.3 and §4.4.
const (
	solicited  = 135
	advertised = 136
	ndLen      = 24 // type, code, checksum, flags, target
	sourceOpt  = 1  // option: source link-layer address, in 8 bytes
)

// solicitation is a frame that asks who has the address.
func solicitation(mac [6]byte, from, target netip.Addr) []byte {
	t := target.As16()
	group := netip.AddrFrom16([16]byte{0: 0xff, 1: 0x02, 11: 1, 12: 0xff, 13: t[13], 14: t[14], 15: t[15]})
	b := ethernet([6]byte{0x33, 0x33, 0xff, t[13], t[14], t[15]}, mac)
	b = header.AppendIPv6(b, from, group, header.ICMPv6, mostHops, ndLen+8)
	b = append(b, solicited, 0, 0, 0, 0, 0, 0, 0)
	b = append(append(b, t[:]...), sourceOpt, 1)
	b = append(b, mac[:]...)
	header.Seal(b[header.EthernetLen:])
	return b
}

// advertisedTarget is the address that a neighbour advertisement is about. One that was forwarded is none.
func advertisedTarget(b []byte) (target netip.Addr, ok bool) {
	ip, ok := header.InFrame(b)
	if !ok || len(ip) < header.IPv6Len+ndLen || ip.Next() != header.ICMPv6 || ip.Hops() != mostHops {
		return target, false
	}
	nd := ip[header.IPv6Len:]
	if nd[0] != advertised {
		return target, false
	}
	return netip.AddrFrom16([16]byte(nd[8:24])), true
}

// checkLinks says what is wrong with the links of a Config.
func checkLinks(links []Link) error {
	for i, l := range links {
		if slices.ContainsFunc(links[:i], func(o Link) bool { return o.Switch == l.Switch && o.Port == l.Port && o.Peer == l.Peer }) {
			return fmt.Errorf("link of %s to %s by %s is there twice", l.Switch, l.Peer, l.Port)
		}
	}
	return nil
}
