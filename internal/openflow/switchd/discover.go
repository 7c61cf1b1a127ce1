package switchd

import (
	"cmp"
	"crypto/rand"
	"maps"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
	lldpframe "scaffold.dev/scaffold/internal/packet/lldp"
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
	now   uint64 // intervals
	seen  map[sighting]*seenLink
	known map[string]controller.Switch
}

// A linkEnd is a port of a switch.
type linkEnd struct{ router, port string }

// A sighting is that an advertisement of one port came to another. Several may come to one: by a bridge, or because somebody
// carries them there. Which of them are links the planner says: those that come both ways (docs/protocol.md §4.1).
type sighting struct{ at, of linkEnd }

// A seenLink is what is known of a sighting.
type seenLink struct {
	mac    [6]byte
	made   uint64 // the last advertisement
	missed int
}

func newDiscoverer() *discoverer {
	d := &discoverer{now: missedMost, seen: map[sighting]*seenLink{}, known: map[string]controller.Switch{}}
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
		Match: controller.Match{ofp.Uint(ofp.EthType, lldpframe.EtherType)}}, d.heard)
}

// changed advertises at once at ports that came up, and forgets what a switch that is gone heard.
func (d *discoverer) changed(s controller.Switch) {
	was := d.known[s.Name]
	d.known[s.Name] = s
	if !s.Up {
		delete(d.known, s.Name)
		maps.DeleteFunc(d.seen, func(x sighting, _ *seenLink) bool { return x.at.router == s.Name })
		return // what it said of its links stays: it forwards on
	}
	for _, p := range s.Ports {
		if p.Up && !slices.Contains(was.Ports, p) {
			d.advertise(s, p)
		}
	}
}

func (d *discoverer) advertise(s controller.Switch, p controller.Port) {
	frame := advertisement{s.Name, p.Name, s.MAC, d.now}.append(nil, &d.seal)
	d.n.Send(s.Name, controller.Out{Actions: []controller.Action{controller.Output{Port: p.Number}}, Data: frame}) //nolint:errcheck // the next is due in a second
}

// heard takes an advertisement; at a link that is new the answer goes out at once. One that is older than a neighbour may be
// silent, or than what was heard, is a recording.
func (d *discoverer) heard(p controller.Packet) {
	a, err := parseAdvertisement(p.Data, &d.seal)
	if err != nil || a.router == p.Switch && a.port == p.Port || a.made > d.now || d.now-a.made > missedMost {
		return
	}
	x := sighting{linkEnd{p.Switch, p.Port}, linkEnd{a.router, a.port}}
	old := d.seen[x]
	if old != nil && a.made < old.made {
		return
	}
	d.seen[x] = &seenLink{mac: a.mac, made: a.made}
	if old != nil && old.mac == a.mac && old.missed <= missedMost {
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
	d.now++
	fresh := map[string]bool{}
	for x, l := range d.seen {
		l.missed++
		if l.missed == missedMost+1 {
			fresh[x.at.router] = true
		}
		if l.missed > forgetAfter {
			delete(d.seen, x)
			fresh[x.at.router] = true
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
	for s, l := range d.seen {
		if s.at.router != router {
			continue
		}
		x := controller.Link{Router: router, Port: s.at.port, Peer: s.of.router, PeerPort: s.of.port,
			MAC: l.mac, Via: viaOf(l.mac), Up: l.missed <= missedMost, Cost: 1}
		if !x.Up {
			x.Reason = "hello"
		}
		links = append(links, x)
	}
	slices.SortFunc(links, func(a, b controller.Link) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.PeerPort, b.PeerPort))
	})
	d.n.SetLinks(router, links) //nolint:errcheck // of a switch that has gone it is kept
}

// viaOf is a neighbour's own address on the link.
func viaOf(mac [6]byte) netip.Addr { return oftables.LinkLocal(mac) }
