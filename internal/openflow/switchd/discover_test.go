package switchd

import (
	"fmt"
	"slices"
	"testing"

	"scaffold.dev/scaffold/controller"
)

// cables are a network of switches under a discoverer; what one sends comes to the port at the other end.
type cables struct {
	fakeNetwork
	to    map[end]linkEnd
	d     *discoverer
	sent  []sentFrame // by port, as long as the test looks
	links map[string][]controller.Link
}

type sentFrame struct {
	from end
	data []byte
}

func (c *cables) HandleSwitches(func(controller.Switch)) {}
func (c *cables) Subscribe(controller.Subscription, func(controller.Packet)) error {
	return nil
}

func (c *cables) Send(at string, out controller.Out) error {
	from := end{at, out.Actions[0].(controller.Output).Port}
	c.sent = append(c.sent, sentFrame{from, slices.Clone(out.Data)})
	if to, ok := c.to[from]; ok {
		c.d.heard(controller.Packet{Switch: to.router, Port: to.port, Data: out.Data})
	}
	return nil
}

func (c *cables) SetLinks(at string, links []controller.Link) error {
	c.links[at] = links
	return nil
}

// of are a switch's links, as PORT>PEER/PORT, with a ! where one is not up.
func (c *cables) of(at string) (s string) {
	for _, l := range c.links[at] {
		s += fmt.Sprintf("%s>%s/%s", l.Port, l.Peer, l.PeerPort)
		if !l.Up {
			s += "!"
		}
		s += " "
	}
	return s
}

// newCables is s1 and s2 with a cable between their ports p1; hosts are at the ports p2.
func newCables(t *testing.T) *cables {
	c := &cables{d: newDiscoverer(), links: map[string][]controller.Link{},
		to: map[end]linkEnd{{"s1", 1}: {"s2", "p1"}, {"s2", 1}: {"s1", "p1"}}}
	c.d.n = c
	c.d.changed(aSwitch("s1", 1))
	c.d.changed(aSwitch("s2", 2))
	c.d.tick()
	if c.of("s1") != "p1>s2/p1 " || c.of("s2") != "p1>s1/p1 " {
		t.Fatalf("the links are %q and %q", c.of("s1"), c.of("s2"))
	}
	return c
}

// Attack, a host at a port of a switch: it has all advertisements that came by, and sends them to its own port, at once,
// later, and with its own hardware address. What comes late is nothing; what comes at once is said of one end alone, which
// makes no link (core/plan, TestALinkThatOneEndAloneReportsIsNone), and takes nothing from the true one.
func TestARecordedAdvertisementMakesNoLink(t *testing.T) {
	c := newCables(t)
	recorded := slices.Clone(c.sent)
	for _, f := range recorded {
		altered := slices.Clone(f.data)
		copy(altered[6:], []byte{2, 6, 6, 6, 6, 6})
		if f.from == (end{"s2", 1}) { // somebody on the cable
			c.d.heard(controller.Packet{Switch: "s1", Port: "p1", Data: altered})
			c.d.heard(controller.Packet{Switch: "s1", Port: "p1", Data: f.data})
		}
		c.d.heard(controller.Packet{Switch: "s2", Port: "p2", Data: f.data})
	}
	mac := func() [6]byte { return c.d.seen[sighting{linkEnd{"s1", "p1"}, linkEnd{"s2", "p1"}}].mac }
	if mac() != aSwitch("s2", 2).MAC || c.d.seen[sighting{linkEnd{"s1", "p1"}, linkEnd{"s2", "p1"}}].missed != 0 {
		t.Errorf("said again at s1, s2 is at %x: %q", mac(), c.of("s1"))
	}
	for _, l := range append(c.links["s1"], c.links["s2"]...) {
		true1 := l.Port == "p1" && l.PeerPort == "p1"
		if !true1 && slices.ContainsFunc(c.links[l.Peer], func(m controller.Link) bool {
			return m.Port == l.PeerPort && m.Peer == l.Router && m.PeerPort == l.Port
		}) {
			t.Errorf("both ends of %+v are said to be there", l)
		}
	}
	c = newCables(t)
	recorded = slices.Clone(c.sent)
	clear(c.to) // the cable is cut
	for range missedMost + 1 {
		c.d.tick()
		for _, f := range recorded {
			for _, p := range []linkEnd{{"s1", "p1"}, {"s2", "p1"}, {"s1", "p2"}} {
				c.d.heard(controller.Packet{Switch: p.router, Port: p.port, Data: f.data})
			}
		}
	}
	for range missedMost + 1 { // what was fresh enough for a moment is old now
		c.d.tick()
	}
	for _, at := range []string{"s1", "s2"} {
		for _, l := range c.links[at] {
			if l.Up {
				t.Errorf("by a recording %s/%s is up to %s/%s", at, l.Port, l.Peer, l.PeerPort)
			}
		}
	}
	before := len(c.d.seen)
	for _, f := range recorded {
		c.d.heard(controller.Packet{Switch: "s2", Port: "p2", Data: f.data})
	}
	if len(c.d.seen) != before {
		t.Error("a recording of long ago is a sighting")
	}
}

// A cable that is moved is a link as soon as its ports are up, and one that is cut is silent when three advertisements were missed.
func TestACableIsALinkAtOnce(t *testing.T) {
	c := newCables(t)
	clear(c.to)
	for range missedMost {
		c.d.tick()
	}
	if c.of("s1") != "p1>s2/p1 " {
		t.Errorf("%d advertisements were missed: %q", missedMost, c.of("s1"))
	}
	c.d.tick()
	if c.of("s1") != "p1>s2/p1! " {
		t.Errorf("%d advertisements were missed: %q", missedMost+1, c.of("s1"))
	}
	c.to[end{"s1", 2}], c.to[end{"s2", 2}] = linkEnd{"s2", "p2"}, linkEnd{"s1", "p2"}
	s := aSwitch("s1", 1)
	s.Ports[1].Up = false
	c.d.changed(s)
	c.d.changed(aSwitch("s1", 1))
	if c.of("s1") != "p1>s2/p1! p2>s2/p2 " || c.of("s2") != "p1>s1/p1! p2>s1/p2 " {
		t.Errorf("a new cable: %q and %q", c.of("s1"), c.of("s2"))
	}
}
