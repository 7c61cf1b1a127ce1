package agent

import (
	"fmt"
	"net/netip"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/wire"
)

// A node is a router under test, with ports that are cables to whoever the test says.
type node struct {
	t     *testing.T
	name  string
	keys  *LinkKeys
	n     *Neighbours
	at    netip.Addr
	sent  []packet // and not yet delivered
	fresh int
}

// A packet is one that left a node.
type packet struct {
	from *node
	port string
	m    wire.Message
}

func newNode(t *testing.T, name string) *node {
	keys := NewLinkKeys()
	return &node{t: t, name: name, keys: keys, n: NewNeighbours(name, keys), at: netip.MustParseAddr("fe80::" + fmt.Sprintf("%x", name[len(name)-1]))}
}

// list tells the nodes of each other, as a controller does; known besides are routers that can prove nothing.
func list(nodes []*node, plain ...string) {
	all := &apiv1.RouterKeys{All: true}
	for _, x := range nodes {
		all.Routers = append(all.Routers, &apiv1.RouterKey{Name: x.name, LinkKey: x.keys.Public()})
	}
	for _, name := range plain {
		all.Routers = append(all.Routers, &apiv1.RouterKey{Name: name})
	}
	for _, x := range nodes {
		x.keys.Take(all)
		x.n.Listed()
	}
}

func (x *node) hello(port string) {
	x.sent = append(x.sent, packet{x, port, wire.Hello{Name: x.name, Port: port}})
}

// tick is what a daemon does each second.
func (x *node) tick(ports ...string) {
	for _, port := range ports {
		x.hello(port)
	}
	x.n.Tick()
	for _, port := range ports {
		for _, key := range x.n.Due(port) {
			x.sent = append(x.sent, packet{x, port, x.n.Link(key, x.at, 7)})
		}
	}
}

// take is what a daemon does with a message that comes from an address.
func (x *node) take(port string, from netip.Addr, m wire.Message) {
	x.t.Helper()
	m, err := wire.Parse(m.Append(nil))
	if err != nil {
		x.t.Fatal(err)
	}
	at := Origin{Port: port, From: from}
	var fresh, answer bool
	var key NeighbourKey
	switch m := m.(type) {
	case wire.Hello:
		fresh, key, answer = x.n.Heard(at, m)
	case wire.Link:
		fresh, key, answer = x.n.Proved(at, m)
	}
	if fresh {
		x.fresh++
	}
	if answer {
		x.sent = append(x.sent, packet{x, port, x.n.Link(key, x.at, 7)})
	}
}

// cable delivers what two nodes say on their ports until neither has anything to say, and returns all of it.
func cable(a *node, aPort string, b *node, bPort string) (all []packet) {
	a.t.Helper()
	for len(a.sent)+len(b.sent) > 0 {
		if len(all) > 1000 {
			a.t.Fatal("they talk without end")
		}
		said := append(a.sent, b.sent...)
		a.sent, b.sent = nil, nil
		for _, p := range said {
			if p.from == a && p.port == aPort {
				b.take(bPort, a.at, p.m)
			} else if p.from == b && p.port == bPort {
				a.take(aPort, b.at, p.m)
			}
		}
		all = append(all, said...)
	}
	return all
}

// links are what a node reports, as PORT>PEER/PORT, with a ! where one is not up.
func (x *node) links() (s string) {
	for _, l := range x.n.Links(func(string) bool { return true }) {
		s += fmt.Sprintf("%s>%s/%s", l.Port, l.Peer, l.PeerPort)
		if !l.Up {
			s += "!"
		}
		s += " "
	}
	return s
}

func (x *node) want(when, links string) {
	x.t.Helper()
	if got := x.links(); got != links {
		x.t.Errorf("%s: %s reports %q, want %q", when, x.name, got, links)
	}
}

// pair are two routers with a link between them.
func pair(t *testing.T) (a, b *node) {
	t.Helper()
	a, b = newNode(t, "a"), newNode(t, "b")
	list([]*node{a, b})
	a.hello("a1")
	cable(a, "a1", b, "b1")
	a.want("after one HELLO", "a1>b/b1 ")
	b.want("after one HELLO", "b1>a/a1 ")
	return a, b
}

// One HELLO, from either side, and the messages that it causes are enough, and there are few of them.
func TestALinkIsProvedInOneExchange(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	list([]*node{a, b})
	a.hello("a1")
	b.hello("b1")
	all := cable(a, "a1", b, "b1")
	a.want("after both greeted", "a1>b/b1 ")
	b.want("after both greeted", "b1>a/a1 ")
	if len(all) > 10 || a.fresh != 1 || b.fresh != 1 {
		t.Errorf("%d messages, %d and %d times news: want at most 10, and once each: %+v", len(all), a.fresh, b.fresh, all)
	}
	for range 200 {
		a.tick("a1")
		b.tick("b1")
		if n := len(cable(a, "a1", b, "b1")); n != 4 {
			t.Fatalf("%d messages in an interval, want a HELLO and a LINK of each", n)
		}
		a.want("later", "a1>b/b1 ")
		b.want("later", "b1>a/a1 ")
	}
	if a.fresh != 1 || b.fresh != 1 || len(a.n.refused)+len(b.n.refused) != 0 {
		t.Errorf("news %d and %d times, refused %v and %v: want once and nothing", a.fresh, b.fresh, a.n.refused, b.n.refused)
	}
}

// Attack, an attacker on the link: it says HELLO in the name of a router, of a host, and of 10,000 others, each second.
func TestAnUnknownRoutersHelloMakesNoLink(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	list([]*node{a, b})
	evil := netip.MustParseAddr("fe80::666")
	for range 5 {
		for i := range 10_000 {
			a.take("dev", evil, wire.Hello{Name: fmt.Sprintf("made-up-%d", i), Port: "x"})
			a.take("dev", evil, wire.Hello{Name: "b", Port: fmt.Sprint("p", i)})
		}
		a.take("dev", evil, wire.Hello{Name: "h1", Port: "x"})
		a.take("dev", evil, wire.Hello{Name: "b", Port: "b1"})
		if len(a.sent) > maxAnswers {
			t.Errorf("%d answers in an interval, want at most %d", len(a.sent), maxAnswers)
		}
		a.sent = nil
		a.n.Tick()
	}
	a.want("after the HELLOs", "")
	if len(a.n.all) != 0 || a.n.refused[refusedUnknown] != 50_005 {
		t.Errorf("%d of them are kept, refused are %v", len(a.n.all), a.n.refused)
	}
	a.hello("a1") // and the true neighbour is one as soon as ever
	cable(a, "a1", b, "b1")
	a.want("with the true neighbour", "a1>b/b1 ")
}

// Attack, an attacker on the link, and a member router c, in the name of b: LINKs that b did not make.
func TestALinkThatItsRouterDidNotMakeIsRefused(t *testing.T) {
	safety.Test(t, safety.Door)
	a, b := pair(t)
	c := newNode(t, "c")
	list([]*node{a, b, c})
	key := NeighbourKey{"a1", "b", "b1"}
	good := b.n.Link(NeighbourKey{"b1", "a", "a1"}, b.at, 7)
	good.Echo = a.n.challenge(key, a.n.tick)
	forged := map[string]wire.Link{}
	m := good
	m.Serial++
	forged["altered"] = m
	m = good
	m.Proof = [wire.ProofLen]byte{}
	forged["without proof"] = m
	m = good
	c.keys.sign(&m, b.at)
	forged["by the member c"] = m
	m.KeyID = good.KeyID
	forged["by the member c, with b's key id"] = m
	m = good
	m.Name = "h1"
	forged["of no router"] = m
	for name, m := range forged {
		m.Port = "b9"
		before := a.n.refused[refusedProof]
		a.take("a1", b.at, m)
		if a.n.refused[refusedProof] != before+1 {
			t.Errorf("%s: %v", name, a.n.refused)
		}
	}
	b.keys.sign(&good, b.at)
	a.take("a1", netip.MustParseAddr("fe80::666"), good) // what is for b would be sent there
	a.want("after the forged ones", "a1>b/b1 ")
	if via := a.n.all[key].Via; via != b.at || a.n.refused[refusedProof] != 6 {
		t.Errorf("b is at %v, refused %v: want %v and 6", via, a.n.refused, b.at)
	}
}

// Attack, an attacker on the link and off it: all that was ever said is recorded, and said again, at each port of each router,
// now and later.
func TestARecordingMakesNoLink(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	list([]*node{a, b})
	var record []packet
	for range 10 {
		a.tick("a1")
		b.tick("b1")
		record = append(record, cable(a, "a1", b, "b1")...)
	}
	replay := func(when string) {
		t.Helper()
		for _, p := range record {
			for port, x := range map[string]*node{"a1": a, "a2": a, "b1": b, "b2": b} {
				x.take(port, p.from.at, p.m)
				x.take(port, netip.MustParseAddr("fe80::666"), p.m)
			}
		}
		a.sent, b.sent = nil, nil
	}
	replay("at once")
	a.want("said again at once", "a1>b/b1 ")
	b.want("said again at once", "b1>a/a1 ")
	for range silentTicks + 1 { // the cable is cut, and the recording says that it is not
		a.n.Tick()
		b.n.Tick()
		replay("after a cut")
	}
	a.want("after a cut", "a1>b/b1! ")
	b.want("after a cut", "b1>a/a1! ")
	a.n.Unplugged("a1") // and was out
	b.n.Unplugged("b1")
	for range forgetTicks {
		a.n.Tick()
		b.n.Tick()
	}
	for range 3 {
		replay("much later")
		a.n.Tick()
		b.n.Tick()
	}
	a.want("much later", "")
	a.hello("a1")
	cable(a, "a1", b, "b1")
	a.want("with the cable in again", "a1>b/b1 ")
}

// A router whose daemon is away for hours, or has begun anew while no controller tells its key, forwards: it stays a
// neighbour, by a silent link, for as long as its cable is in and it is of the network.
func TestARouterWhoseDaemonIsAwayStaysANeighbour(t *testing.T) {
	a, b := pair(t)
	for range 3 {
		a.tick("a1")
		b.tick("b1")
		cable(a, "a1", b, "b1")
	}
	away := func(ticks int) {
		for range ticks {
			a.n.Tick()
		}
	}
	away(100 * forgetTicks)
	a.want("for hours", "a1>b/b1! ")
	if !a.n.Leads("a1") {
		t.Error("what it forwards would be dropped at the port")
	}
	a.n.Unplugged("a1")
	away(1)
	a.want("with the cable out", "")
	if a.n.Leads("a1") {
		t.Error("anybody at the port would be taken for it")
	}
}

// Attack, an attacker with a device at a port of each router: what b says at b2 is carried to a2 one way, at once. Only who
// carries both ways is a cable.
func TestWhatIsCarriedOneWayMakesNoLink(t *testing.T) {
	a, b := pair(t)
	for range 10 {
		a.tick("a1", "a2")
		b.tick("b1", "b2")
		for _, p := range b.sent {
			a.take("a2", b.at, p.m)
		}
		cable(a, "a1", b, "b1")
	}
	a.want("carried one way", "a1>b/b1 ")
	b.want("carried one way", "b1>a/a1 ")
}

// A neighbour that is not heard any more, or does not hear us, is silent after as many intervals as ever.
func TestALinkThatIsCutOneWayFallsSilent(t *testing.T) {
	a, b := pair(t)
	for i := range 2*silentTicks + 2 {
		a.tick("a1")
		b.tick("b1")
		b.sent = append(b.sent, a.sent...) // a is heard, b is not
		a.sent = nil
		for _, p := range b.sent {
			if p.from == a {
				b.take("b1", a.at, p.m)
			}
		}
		b.sent = nil
		if want := map[bool]string{true: "a1>b/b1 ", false: "a1>b/b1! "}[i < silentTicks]; a.links() != want {
			t.Fatalf("after %d intervals a reports %q, want %q", i+1, a.links(), want)
		}
	}
	b.want("b is not heard by a", "b1>a/a1! ")
}

// A daemon that begins anew has another key. Its neighbours stay up, and no interval is waited for.
func TestARouterThatBeginsAnewKeepsItsLinks(t *testing.T) {
	a, b := pair(t)
	next := newNode(t, "b")
	list([]*node{next}, "a") // it greets before it has joined
	next.hello("b1")
	for _, p := range next.sent {
		a.take("a1", next.at, p.m)
	}
	a.sent, next.sent = nil, nil
	list([]*node{a, next})
	a.hello("a1") // as daemons do on the news of a key
	for _, key := range a.n.Due("a1") {
		a.sent = append(a.sent, packet{a, "a1", a.n.Link(key, a.at, 7)})
	}
	cable(a, "a1", next, "b1")
	next.want("anew", "b1>a/a1 ")
	a.want("anew", "a1>b/b1 ")
	a.n.Tick()
	if r := next.n.Report(func(string) bool { return true }); !r.Partial {
		t.Error("what it reports is called all there is, and its neighbours have not had the time to answer")
	}
	for range silentTicks + 1 {
		next.n.Tick()
	}
	if r := next.n.Report(func(string) bool { return true }); r.Partial {
		t.Error("it looks for its neighbours for ever")
	}
	before := a.n.refused[refusedProof]
	a.take("a1", b.at, b.n.Link(NeighbourKey{"b1", "a", "a1"}, b.at, 7))
	if a.n.refused[refusedProof] != before+1 {
		t.Error("the key of before still counts")
	}
}

// A router of the version before, and a controller of the version before: HELLO counts, as it did, within bounds.
func TestHelloCountsForWhoCannotProve(t *testing.T) {
	a := newNode(t, "a")
	old := netip.MustParseAddr("fe80::7")
	for i := range 1000 { // the controller does not tell who is in the network
		a.take("a1", old, wire.Hello{Name: fmt.Sprint("old", i), Port: "x"})
	}
	if got := len(a.n.all); got != MaxNeighbours {
		t.Errorf("%d neighbours at a port, want %d", got, MaxNeighbours)
	}
	a = newNode(t, "a")
	list([]*node{a}, "old")
	a.take("a1", old, wire.Hello{Name: "old", Port: "x"})
	a.take("a1", old, wire.Hello{Name: "other", Port: "x"})
	a.want("one of the version before", "a1>old/x ")
	// It is upgraded: its link stays up until it proves itself, and is then reported once.
	b := newNode(t, "old")
	list([]*node{a, b})
	a.want("upgraded", "a1>old/x ")
	b.hello("x")
	cable(a, "a1", b, "x")
	a.want("proved", "a1>old/x ")
	b.want("proved", "x>a/a1 ")
	// And back.
	list([]*node{a}, "old")
	a.take("a1", old, wire.Hello{Name: "old", Port: "x"})
	a.want("of the version before again", "a1>old/x ")
	// It is no router of the network any more.
	a.keys.Take(&apiv1.RouterKeys{Routers: []*apiv1.RouterKey{{Name: "old", Gone: true}}})
	a.want("forgotten", "")
}

// Attack: a router that had proved itself was forgotten, and goes on to say HELLO and true LINKs.
func TestAForgottenRouterProvesNothing(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	list([]*node{a, b})
	b.hello("b1")
	cable(a, "a1", b, "b1")
	a.want("proved", "a1>b/b1 ")
	if !a.keys.Take(&apiv1.RouterKeys{Routers: []*apiv1.RouterKey{{Name: "b", Gone: true}}}) {
		t.Error("that b is gone is no news: a would not tell that the link is none any more")
	}
	for range 3 {
		b.tick("b1")
		a.tick("a1")
		cable(a, "a1", b, "b1")
		a.want("forgotten", "")
	}
	if a.n.Refused()[refusedUnknown] == 0 {
		t.Errorf("what it said was not counted: %v", a.n.Refused())
	}
}

// A configured link, over a router that knows nothing of Scaffold: nothing that an attacker says moves it, and its far end's
// locator, to which a route is made, is what that proves.
func TestAConfiguredLinkIsProvedToo(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	plain := netip.MustParseAddr("fe80::99")
	a.n.Configure("far", "b", plain)
	b.n.Configure("far", "a", plain)
	list([]*node{a, b})
	a.want("before", "far>b/ ")
	evil := netip.MustParseAddr("fe80::666")
	a.take("far", evil, wire.Hello{Name: "b", Port: "x", Locator: 0x666})
	a.sent = nil
	if nb := a.n.all[NeighbourKey{Port: "far", Peer: "b"}]; nb.Locator != 0 || a.links() != "far>b/ " {
		t.Errorf("an attacker's HELLO: b is %+v", nb)
	}
	a.at, b.at = netip.MustParseAddr("fd5d:0:1:100::1"), netip.MustParseAddr("fd5d:0:1:200::1")
	a.hello("far")
	cable(a, "far", b, "far")
	a.want("proved", "far>b/far ")
	b.want("proved", "far>a/far ")
	if nb := a.n.all[NeighbourKey{Port: "far", Peer: "b"}]; nb.Locator != 7 || nb.Via != plain {
		t.Errorf("b is %+v, want locator 7 by %v", nb, plain)
	}
	for range silentTicks + 1 {
		a.n.Tick()
	}
	a.want("silent", "far>b/far! ")
}

// Attack, a member router: it says that it has thousands of ports on the link.
func TestAMemberHasAFewPortsOnALink(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	list([]*node{a, b})
	for i := range 1000 {
		a.take("a1", b.at, b.n.Link(NeighbourKey{fmt.Sprint("b", i), "a", "a1"}, b.at, 7))
	}
	if len(a.n.all) != maxEnds {
		t.Errorf("%d of its ports are kept, want %d", len(a.n.all), maxEnds)
	}
}

// Two ports of one router at one port of another, by a bridge, are two links.
func TestTwoPortsBehindABridgeAreTwoLinks(t *testing.T) {
	a, b := newNode(t, "a"), newNode(t, "b")
	list([]*node{a, b})
	for range 10 {
		a.tick("a1")
		b.tick("b1", "b2")
		for len(a.sent)+len(b.sent) > 0 {
			said := append(a.sent, b.sent...)
			a.sent, b.sent = nil, nil
			for _, p := range said {
				if p.from == a {
					b.take("b1", a.at, p.m)
					b.take("b2", a.at, p.m)
				} else {
					a.take("a1", b.at, p.m)
				}
			}
		}
	}
	a.want("by a bridge", "a1>b/b1 a1>b/b2 ")
	b.want("by a bridge", "b1>a/a1 b2>a/a1 ")
}

// A key by which everybody has the same secret proves nothing.
func TestAWeakKeyProvesNothing(t *testing.T) {
	safety.Test(t, safety.Door)
	a := newNode(t, "a")
	a.keys.Take(&apiv1.RouterKeys{All: true, Routers: []*apiv1.RouterKey{{Name: "b", LinkKey: make([]byte, 32)}, {Name: "c", LinkKey: []byte("short")}}})
	for _, name := range []string{"b", "c"} {
		m := wire.Link{Header: wire.Header{KeyID: wire.KeyID(a.keys.peers[name].key)}, Name: name, Port: "p", Peer: "a", PeerPort: "a1", Serial: 1}
		a.take("a1", netip.MustParseAddr("fe80::7"), m)
	}
	if len(a.n.all) != 0 || a.n.refused[refusedProof] != 2 {
		t.Errorf("%d neighbours, refused %v", len(a.n.all), a.n.refused)
	}
}
