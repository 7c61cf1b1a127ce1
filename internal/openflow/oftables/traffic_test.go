package oftables

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// A bench is a real switch with four ports, whose other ends are raw sockets.
type bench struct {
	real
	tables *Tables
	ends   map[string]*nstest.Frames
	rand   *rand.Rand
}

// newBench is the router of demo, but all hosts are behind p1: what comes out there says where it goes.
func newBench(t testing.TB, o Options) *bench {
	t.Helper()
	sw, out := nstest.New(t, "switch"), nstest.New(t, "hosts")
	ovs := sw.NewOVS(t)
	socket := ovs.Bridge(t, "s1", protocols[o.Version])
	b := &bench{ends: map[string]*nstest.Frames{}, rand: rand.New(rand.NewPCG(1, 2))}
	for i := range 4 {
		p := fmt.Sprintf("p%d", i+1)
		nstest.Veth(t, sw, p, out, "h"+p)
		out.Sysctl(t, "net/ipv6/conf/h"+p+"/disable_ipv6", "1")
		sw.Sysctl(t, "net/ipv6/conf/"+p+"/disable_ipv6", "1")
		b.ends[p] = out.Frames(t, "h"+p)
		ovs.Vsctl(t, "add-port", "s1", p, "--", "set", "interface", p, fmt.Sprintf("ofport_request=%d", i+1))
	}
	b.real = dial(t, ovs, socket)
	if err := b.Send(ofp.SetConfig{Config: ofp.Config{MissLen: ofp.WholePacket}}); err != nil { // punt to us
		t.Fatal(err)
	}
	b.tables = demo(o)
	b.hostsAt("p1", 3)
	b.tell(t, b.tables.Drain())
	return b
}

// hostsAt moves the first n hosts to a port.
func (b *bench) hostsAt(port string, n int) {
	for i := range n {
		b.tables.Apply(plan.Rules{Routes: []plan.Route{hostRoute(0x101+i, port)}})
	}
}

// client is a first packet of a client far away.
func (b *bench) client(p sid.Proto, port uint16) frame {
	return frame{from: hostMAC(0x9999), to: routerMAC, hopLimit: 64, proto: p, dport: port,
		src: space.Locator(0x205).Addr(uint64(sid.NewSocketID(b.rand.Uint64()))), sport: uint16(1024 + b.rand.IntN(60000)),
		dst: space.ServiceAddr(serviceID(0)), payload: "0123456789"}
}

// through sends frames into a port and returns what comes out of another; as many at a time as the sockets hold.
func (b *bench) through(t testing.TB, in, out string, frames ...frame) (got []frame) {
	t.Helper()
	const batch = 64
	for len(frames) > 0 {
		some := frames[:min(batch, len(frames))]
		for _, f := range some {
			b.ends[in].Send(t, f.bytes())
		}
		for range some {
			b.ends[out].Next(t, "packet that was forwarded", func(raw []byte) bool {
				f, right, ok := parse(raw)
				if !ok || f.from != routerMAC {
					return false
				}
				if !right {
					t.Errorf("the checksum is wrong of %+v", f)
				}
				got = append(got, f)
				return true
			})
		}
		frames = frames[len(some):]
	}
	return got
}

// split counts frames by the locator that they are sent to.
func split(frames []frame) map[sid.Locator]int {
	m := map[sid.Locator]int{}
	for _, f := range frames {
		m[sid.LocatorOf(f.dst)]++
	}
	return m
}

// likely is the chance that counts are at least as far from the weights as these.
func likely(counts map[sid.Locator]int, ts []resolve.Target) float64 {
	var n, all, x float64
	for _, t := range ts {
		n, all = n+float64(counts[t.Locator]), all+float64(t.Weight)
	}
	for _, t := range ts {
		due := n * float64(t.Weight) / all
		x += (float64(counts[t.Locator]) - due) * (float64(counts[t.Locator]) - due) / due
	}
	k := 2 / (9 * float64(len(ts)-1))
	z := (math.Cbrt(x/float64(len(ts)-1)) - 1 + k) / math.Sqrt(k) // Wilson and Hilferty, 1931
	return math.Erfc(z/math.Sqrt2) / 2
}

const flowsOfATest = 10000

// TestOpenVSwitchObeysWeights: 10,000 flows to 1:2:3, of TCP and of UDP, by each way of choosing.
func TestOpenVSwitchObeysWeights(t *testing.T) {
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, o)
			for p, port := range map[sid.Proto]uint16{sid.TCP: 80, sid.UDP: 53} {
				var frames []frame
				for range flowsOfATest {
					frames = append(frames, b.client(p, port))
				}
				counts := split(b.through(t, "p4", "p1", frames...))
				chance := likely(counts, targets(1, 2, 3))
				t.Logf("%v: %v, p = %.3g, shares %+v", p, counts, chance, b.tables.Shares(triple(0, p, port)))
				if chance < 0.001 {
					t.Errorf("%v: %v for 1:2:3: p = %.2g, want at least 0.001", p, counts, chance)
				}
			}
			b.holds(t, b.tables)
		})
	}
}

func TestOpenVSwitchRewritesAndForwards(t *testing.T) {
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, o)
			one := b.client(sid.TCP, 22)
			unresolved := one
			unresolved.dst = space.Locator(0).Addr(sid.Low(one.dst))
			bound := b.client(sid.UDP, 4000)
			bound.dst = space.Locator(0x102).Addr(1 << 63)
			back := bound
			back.dst = space.Locator(0x210).Addr(5)
			moved := bound
			moved.dst = space.Locator(0x110).Addr(1<<63 | 7)
			for what, c := range map[string]struct {
				f    frame
				out  string
				want netip.Addr
				to   ofp.MAC
			}{
				"a service":                {one, "p1", space.Locator(0x101).Addr(sid.Low(one.dst)), hostMAC(0x101)},
				"a service, without ssID":  {unresolved, "p1", space.Locator(0x101).Addr(sid.Low(one.dst)), hostMAC(0x101)},
				"a host":                   {bound, "p1", bound.dst, hostMAC(0x102)},
				"back where it came from":  {back, "p4", back.dst, hostMAC(0x9999)},
				"moved, and back where it": {moved, "p4", space.Locator(0x210).Addr(1<<63 | 7), hostMAC(0x9999)},
			} {
				if c.f.dst == moved.dst && !b.tables.masks() {
					continue
				}
				got := b.through(t, "p4", c.out, c.f)[0]
				want := c.f
				want.from, want.to, want.dst, want.payload, want.hopLimit = routerMAC, c.to, c.want, "", c.f.hopLimit-1
				if got != want {
					t.Errorf("%s: got %+v, want %+v", what, got, want)
				}
			}
		})
	}
}

// TestOpenVSwitchKeepsFragmentsTogether: all fragments of a datagram, and the echoes of a client, meet the same
// instance; different clients meet different ones.
func TestOpenVSwitchKeepsFragmentsTogether(t *testing.T) {
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, o)
			met := map[sid.Locator]int{}
			for range 100 {
				first := b.client(sid.UDP, 53)
				first.fragment, first.payload = 1, "0123456789abcdef"
				later, last, echo := first, first, first
				later.fragment = 3<<3 | 1
				last.fragment = 6 << 3
				echo.fragment, echo.proto, echo.dport = 0, sid.ICMPv6, icmpEcho
				again := echo
				again.sport++
				for _, group := range [][]frame{{first, later, last}, {echo, again}} {
					got := split(b.through(t, "p4", "p1", group...))
					if len(got) != 1 {
						t.Fatalf("%+v is spread over %v", group, got)
					}
					for l := range got {
						met[l]++
					}
				}
			}
			if len(met) != 3 {
				t.Errorf("100 clients met %v, want all three", met)
			}
		})
	}
}

// punted sends a frame into a port and returns what comes to the controller of it.
func (b *bench) punted(t testing.TB, in string, f frame) ofp.PacketIn {
	t.Helper()
	b.ends[in].Send(t, f.bytes())
	return nstest.Receive(t, "packet-in", b.PacketIns())
}

func TestOpenVSwitchPunts(t *testing.T) {
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, o)
			to := func(l sid.Locator, low uint64) frame {
				f := b.client(sid.UDP, 4000)
				f.dst = l.Addr(low)
				return f
			}
			first := func(change func(*frame)) frame {
				f := b.client(sid.TCP, 80)
				change(&f)
				return f
			}
			message := to(ownHere, sid.HostSuffix)
			message.dport = sid.Port
			cases := map[string]struct {
				f    frame
				want uint32
			}{
				"an unknown service":           {first(func(f *frame) { f.dst = space.ServiceAddr(serviceID(9)) }), PuntFirst},
				"a service without instance":   {first(func(f *frame) { f.dst = space.ServiceAddr(serviceID(1)) }), PuntFirst},
				"a port that nobody serves":    {first(func(f *frame) { f.dport = 81 }), PuntFirst},
				"returned by an instance":      {first(func(f *frame) { f.label = 2 }), PuntRetry},
				"a host that is gone":          {to(space.Locator(0x111), 1<<63), PuntGone},
				"a locator that nobody has":    {to(space.Locator(0x150), 1<<63), PuntNoRoute},
				"a block that nobody has":      {to(space.Locator(0x350), 1<<63), PuntNoRoute},
				"a message to the router":      {message, PuntOwn},
				"something else to the router": {to(ownHere, sid.HostSuffix), PuntAddressed},
			}
			if o.Extensions {
				cases["the last hop"] = struct {
					f    frame
					want uint32
				}{first(func(f *frame) { f.hopLimit = 1 }), PuntHopLimit}
			}
			if !b.tables.masks() {
				cases["a host that moved"] = struct {
					f    frame
					want uint32
				}{to(space.Locator(0x110), 1<<63), PuntRedirected}
			}
			for what, c := range cases {
				in := b.punted(t, "p4", c.f)
				owner, id, ok := Punted(in.Cookie)
				got, _, parsed := parse(in.Data)
				sent := c.f
				sent.payload = ""
				if !ok || owner != 0 || id != c.want || in.InPort() != 4 || !parsed || got != sent {
					t.Errorf("%s: owner %d, id %d, ours %v, port %v, packet %+v; want id %d, port 4 and the packet %+v", what, owner, id, ok, in.InPort(), got, c.want, sent)
				}
			}
		})
	}
}

// TestOpenVSwitchCopies: a packet that is copied to two owners goes on all the same, and what the meter drops of the
// copies too.
func TestOpenVSwitchCopies(t *testing.T) {
	b := newBench(t, kinds["Open vSwitch"])
	match := ofp.Match{ipv6, proto(sid.UDP)}
	b.tables.Own(16, []Flow{{ID: 5, First: true, Priority: 2, Match: match, Punt: true, Copy: true, Rate: 5}})
	b.tables.Own(17, []Flow{{ID: 6, First: true, Priority: 1, Match: append(match[:1:1], ofp.Uint(ofp.InPort, 4)), Punt: true, Copy: true}})
	b.tell(t, b.tables.Drain())
	b.holds(t, b.tables)
	f := b.client(sid.UDP, 53)
	b.through(t, "p4", "p1", f)
	f.payload = ""
	heard := map[uint16]uint32{}
	for range 2 {
		in := nstest.Receive(t, "packet-in", b.PacketIns())
		owner, id, ok := Punted(in.Cookie)
		heard[owner] = id
		if got, _, _ := parse(in.Data); !ok || got != f || in.InPort() != 4 {
			t.Errorf("owner %d hears %+v of port %v, want %+v of 4", owner, got, in.InPort(), f)
		}
	}
	if heard[16] != 5 || heard[17] != 6 {
		t.Errorf("heard by owner: %v, want 5 by 16 and 6 by 17", heard)
	}
	var many []frame
	for range 500 {
		many = append(many, b.client(sid.UDP, 53))
	}
	b.through(t, "p4", "p1", many...)
	b.tables.Own(16, nil)
	b.tables.Own(17, nil)
	b.tell(t, b.tables.Drain())
	b.holds(t, b.tables)
}

// TestOpenVSwitchHoldsWhatNoGroupCan: many targets, and one that is hardly ever due.
func TestOpenVSwitchHoldsWhatNoGroupCan(t *testing.T) {
	b := newBench(t, kinds["Open vSwitch"])
	b.tables.Apply(plan.Rules{Routes: []plan.Route{{Prefix: space.AS, Via: netip.MustParseAddr("fe80::7"), Port: "p1", MAC: hostMAC(7)}}})
	for name, weights := range map[string][]uint32{"20 equal": ones(20), "200 equal": ones(200), "1:100:1000": {1, 100, 1000}} {
		ts, port := targets(weights...), uint16(len(weights))
		b.tables.Apply(plan.Rules{Resolutions: []plan.Resolution{{Triple: triple(0, sid.UDP, port), Targets: ts}}})
		b.tell(t, b.tables.Drain())
		b.holds(t, b.tables)
		var frames []frame
		for range flowsOfATest {
			frames = append(frames, b.client(sid.UDP, port))
		}
		counts := split(b.through(t, "p4", "p1", frames...))
		if chance := likely(counts, ts); chance < 0.001 || len(counts) != len(weights) {
			t.Errorf("%s: %v, p = %.2g, want at least 0.001", name, counts, chance)
		} else {
			t.Logf("%s: p = %.3g, %+v", name, chance, b.tables.Shares(triple(0, sid.UDP, port))[0])
		}
	}
}

func ones(n int) (ws []uint32) {
	for range n {
		ws = append(ws, 1)
	}
	return ws
}
