package switchd

import (
	"cmp"
	"crypto/rand"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/ofp"
)

// How often switches advertise themselves, and how many times a neighbour may be missed.
const (
	advertiseEvery = time.Second
	missedMost     = 3
	forgetAfter    = 60
)

// A discoverer finds the links between our own switches, as a module like others.
type discoverer struct {
	n     controller.Network
	seal  seal
	seen  map[linkEnd]*seenLink
	known map[string]controller.Switch
}

// A linkEnd is a port of a switch.
type linkEnd struct{ router, port string }

// A seenLink is what was heard at a linkEnd.
type seenLink struct {
	peer   advertisement
	mac    [6]byte
	missed int
}

func newDiscoverer() *discoverer {
	d := &discoverer{seen: map[linkEnd]*seenLink{}, known: map[string]controller.Switch{}}
	rand.Read(d.seal[:]) // never fails (crypto/rand)
	return d
}

// Name implements controller.Module.
func (*discoverer) Name() string { return "links" }

// Start implements controller.Module.
func (d *discoverer) Start(n controller.Network) error {
	d.n = n
	n.HandleSwitches(d.changed)
	n.Every(advertiseEvery, d.tick)
	return n.Subscribe(controller.Subscription{Name: "lldp", First: true, Rate: 1000,
		Match: controller.Match{ofp.Uint(ofp.EthType, etherLLDP)}}, d.heard)
}

// changed advertises at once at ports that came up, and forgets what a switch that is gone heard.
func (d *discoverer) changed(s controller.Switch) {
	was := d.known[s.Name]
	d.known[s.Name] = s
	if !s.Up {
		delete(d.known, s.Name)
		for end := range d.seen {
			if end.router == s.Name {
				delete(d.seen, end)
			}
		}
		return // what it said of its links stays: it forwards on
	}
	for _, p := range s.Ports {
		if p.Up && !slices.Contains(was.Ports, p) {
			d.advertise(s, p)
		}
	}
}

func (d *discoverer) advertise(s controller.Switch, p controller.Port) {
	frame := advertisement{s.Name, p.Name}.append(nil, s.MAC, &d.seal)
	d.n.Send(s.Name, controller.Out{Actions: []controller.Action{controller.Output{Port: p.Number}}, Data: frame}) // the next is due in a second
}

// heard takes an advertisement; at a link that is new the answer goes out at once.
func (d *discoverer) heard(p controller.Packet) {
	a, err := parseAdvertisement(p.Data, &d.seal)
	if err != nil || a.router == p.Switch && a.port == p.Port {
		return
	}
	end, mac := linkEnd{p.Switch, p.Port}, [6]byte(p.Data[6:12])
	old := d.seen[end]
	d.seen[end] = &seenLink{peer: a, mac: mac}
	if old != nil && old.peer == a && old.mac == mac && old.missed <= missedMost {
		return
	}
	d.tell(p.Switch)
	if s, ok := d.known[p.Switch]; ok {
		for _, port := range s.Ports {
			if port.Name == p.Port {
				d.advertise(s, port)
			}
		}
	}
}

func (d *discoverer) tick() {
	fresh := map[string]bool{}
	for end, l := range d.seen {
		l.missed++
		if l.missed == missedMost+1 {
			fresh[end.router] = true
		}
		if l.missed > forgetAfter {
			delete(d.seen, end)
			fresh[end.router] = true
		}
	}
	for name := range fresh {
		d.tell(name)
	}
	for _, s := range d.known {
		for _, p := range s.Ports {
			if p.Up {
				d.advertise(s, p)
			}
		}
	}
}

// tell says what is known of a switch's links.
func (d *discoverer) tell(router string) {
	var links []controller.Link
	for end, l := range d.seen {
		if end.router != router {
			continue
		}
		x := controller.Link{Router: router, Port: end.port, Peer: l.peer.router, PeerPort: l.peer.port,
			MAC: l.mac, Via: viaOf(l.mac), Up: l.missed <= missedMost, Cost: 1}
		if !x.Up {
			x.Reason = "hello"
		}
		links = append(links, x)
	}
	slices.SortFunc(links, func(a, b controller.Link) int { return cmp.Compare(a.Port, b.Port) })
	d.n.SetLinks(router, links) // of a switch that has gone it is kept
}

// viaOf is a neighbour's own address on the link.
func viaOf(mac [6]byte) netip.Addr { return linkLocal(ofp.MAC(mac)) }
