package emurouter

import (
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fib"
	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// What the tests' rules are about.
var (
	space   = sid.DefaultSpace()
	own     = space.Locator(0x100)
	web     = sid.ServiceID{SS: 1, Suffix: 0x00c0ffee00c0ffee}
	client  = space.Locator(0x101).Addr(0x8000_1234_5678_9abc)
	targets = []resolve.Target{{Locator: space.Locator(0x201), Weight: 1}, {Locator: space.Locator(0x202), Weight: 3}}
	moved   = space.Locator(0x103)
	left    = space.Locator(0x104)
)

// An end is one side of a link of the router under test: it keeps what comes, and sends what it is told to.
type end struct{ got [][]byte }

func (e *end) Process(r *emu.Router, batch []emu.Packet) {
	for i := range batch {
		if ip, ok := r.Edit(&batch[i]); ok {
			e.got = append(e.got, append([]byte(nil), ip...))
		}
		batch[i].Port = emu.Drop
	}
}

// A scene is the path between hosts at port 0 and other routers at port 1, in virtual time, without the control.
type scene struct {
	*emu.Net
	*path
	hosts, net   end
	router       *emu.Router
	hostSide, up *emu.Router
}

// bare is the path without a control.
type bare struct{ *path }

func (b bare) Process(r *emu.Router, batch []emu.Packet) {
	for i := range batch {
		b.packet(r, &batch[i])
	}
}

func (b bare) Wake(r *emu.Router, now time.Duration) time.Duration {
	b.watchPorts(r)
	return now + b.probe(r)
}

func newScene(t *testing.T, service bool) *scene {
	t.Helper()
	cfg := &Config{Name: "r1", Service: service, Controller: "unix:/x", LinkLocal: netip.MustParseAddr("fe80::1"), Ports: []Port{{"to-h", 1500}, {"to-r", 1400}}}
	if err := cfg.check(); err != nil {
		t.Fatal(err)
	}
	s := &scene{Net: emu.New(emu.Options{Virtual: true, Log: t.Errorf}), path: newPath(cfg)}
	t.Cleanup(func() { s.Close() })
	s.hostSide, s.router, s.up = s.Router("h", &s.hosts), s.Router("r1", bare{s.path}), s.Router("r2", &s.net)
	for _, n := range []*emu.Router{s.hostSide, s.up} {
		if _, err := s.Link(n, s.router, [2]emu.Params{}); err != nil {
			t.Fatal(err)
		}
	}
	s.place(space, own)
	s.answers.Begin()
	s.answers.Apply(plan.Rules{
		Services:    []plan.ServiceRule{{Service: web, Instances: 2}},
		Resolutions: []plan.Resolution{{Triple: sid.Triple{Service: web, Proto: sid.TCP, Port: 80}, Targets: targets}},
		Redirects:   []plan.Redirect{{From: moved, To: space.Locator(0x203)}},
		Gone:        []plan.Gone{{Locator: left}},
	})
	s.answers.Commit()
	for prefix, port := range map[string]fib.Hop{"fd5d:0:1:100::/56": 0, "fd5d:0:1:200::/56": 1, "fd5c::/32": 1} {
		if err := s.ways.Set(netip.MustParsePrefix(prefix), firstPort+port); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// send lets a packet come from the hosts, or from the other routers.
func (s *scene) send(t *testing.T, from *emu.Router, ip []byte) {
	t.Helper()
	s.hosts.got, s.net.got = nil, nil
	if err := s.Run(s.Now()); err != nil { // begins
		t.Fatal(err)
	}
	p, ok := from.New(ip)
	if !ok {
		t.Fatal("no memory")
	}
	from.Send(p, 0)
	if err := s.Run(s.Now() + time.Microsecond); err != nil {
		t.Fatal(err)
	}
}

func syn(dst netip.Addr, port uint16) bpftest.Packet {
	return bpftest.Packet{Src: client, Dst: dst, Proto: bpftest.TCP, SPort: 40000, DPort: port, Flags: bpftest.SYN, HopLimit: 64}
}

// only is the one packet that arrived, with a right checksum.
func only(t *testing.T, got [][]byte) []byte {
	t.Helper()
	if len(got) != 1 || !bpftest.ChecksumOK(got[0]) {
		t.Fatalf("got %x: want one packet whose checksum is right", got)
	}
	return got[0]
}

func TestFirstPacketsGoWhereTheOracleSays(t *testing.T) {
	s := newScene(t, true)
	oracle, err := resolve.New(targets)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(50) {
		p := syn(space.ServiceAddr(web), 80)
		p.Src = space.Locator(0x101).Addr(1<<63 | i*0x9e3779b97f4a7c15)
		s.send(t, s.hostSide, p.Bytes())
		want, _ := oracle.Pick(resolve.Hash(p.Src, 0))
		ip := only(t, s.net.got)
		if _, dst := bpftest.Addrs(ip); dst != want.Addr(uint64(web.Suffix)) || ip[7] != 63 {
			t.Fatalf("sent to %v with hop limit %d, want %v and 63", dst, ip[7], want)
		}
	}
}

func TestWhatBecomesOfPackets(t *testing.T) {
	big := syn(space.Locator(0x201).Addr(1<<63), 80)
	big.Payload = make([]byte, 1400)
	last := syn(space.Locator(0x201).Addr(1<<63), 80)
	last.HopLimit = 1
	for name, c := range map[string]struct {
		packet bpftest.Packet
		fate   string
		back   bool        // answered
		to     sid.Locator // gone on to
	}{
		"bound":            {syn(space.Locator(0x201).Addr(1<<63), 80), "", false, space.Locator(0x201)},
		"to who has moved": {syn(moved.Addr(1<<63|5), 80), "redirected", false, space.Locator(0x203)},
		"to who is gone":   {syn(left.Addr(1<<63|5), 80), "answered_gone", true, 0},
		"no such port":     {syn(space.ServiceAddr(web), 81), "refused_no_port", true, 0},
		"no such service":  {syn(space.ServiceAddr(sid.ServiceID{SS: 1, Suffix: 0x20000}), 80), "refused_unknown", true, 0},
		"nowhere":          {syn(space.Locator(0x999).Addr(1<<63), 80), "refused_no_route", true, 0},
		"too big":          {big, "refused_too_big", true, 0},
		"hop limit":        {last, "expired_hop_limit", true, 0},
		"to the router":    {bpftest.Packet{Src: client, Dst: own.Host(), Proto: bpftest.ICMPv6, Type: 128, HopLimit: 64}, "answered_echo", true, 0},
	} {
		s := newScene(t, true)
		s.send(t, s.hostSide, c.packet.Bytes())
		if n := s.answers.Counts()[c.fate]; c.fate != "" && n != 1 {
			t.Errorf("%s: counted %v, want %s", name, s.answers.Counts(), c.fate)
		}
		if c.back {
			if _, dst := bpftest.Addrs(only(t, s.hosts.got)); dst != client || len(s.net.got) != 0 {
				t.Errorf("%s: answered to %v", name, dst)
			}
			continue
		}
		if _, dst := bpftest.Addrs(only(t, s.net.got)); sid.LocatorOf(dst) != c.to {
			t.Errorf("%s: went to %v, want %v", name, dst, c.to)
		}
	}
}

func TestANetworkRouterLeavesNamesToOthers(t *testing.T) {
	s := newScene(t, false)
	s.send(t, s.hostSide, syn(space.ServiceAddr(web), 80).Bytes())
	if _, dst := bpftest.Addrs(only(t, s.net.got)); dst != space.ServiceAddr(web) {
		t.Errorf("sent to %v", dst)
	}
}

// A host answers probes until its link is cut: it is up, then gone at once.
func TestHostsAreProbedAndLostWithTheirPort(t *testing.T) {
	s := newScene(t, true)
	host := space.Locator(0x101)
	s.probes.SetLimits(liveness.Limits{Suspect: 3, Gone: 40})
	s.probes.Add(host, "to-h", 7)
	if err := s.Run(10 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	probe := only(t, s.hosts.got)
	from, body, ok := message(probe)
	typ, h, err := wire.ParseHeader(body)
	if !ok || err != nil || typ != wire.TypeProbe || from != own.Host() {
		t.Fatalf("%x is no PROBE: %v", probe, err)
	}
	s.send(t, s.hostSide, datagram(host.Host(), own.Host(), wire.ProbeAck{Header: h}.Append(nil)))
	if got := hostEvents(s.mail.take()); len(got) != 1 || got[0].State != liveness.Up {
		t.Fatalf("after an answer: %+v", got)
	}
	s.Links()[0].SetUp([2]bool{})
	if err := s.Run(s.Now() + probesOff); err != nil {
		t.Fatal(err)
	}
	if got := hostEvents(s.mail.take()); len(got) != 1 || got[0].State != liveness.Gone || got[0].Reason != "carrier" {
		t.Fatalf("without a carrier: %+v", got)
	}
}

func hostEvents(events []event) (all []liveness.Change) {
	for _, e := range events {
		all = append(all, e.hosts...)
	}
	return all
}

func TestNothingIsAllocatedForPacketsOfBoundFlows(t *testing.T) {
	s := newScene(t, true)
	ip := syn(space.Locator(0x201).Addr(1<<63), 80).Bytes()
	s.send(t, s.hostSide, ip)
	s.up.Swap(drop{})
	if n := testing.AllocsPerRun(100, func() {
		p, _ := s.hostSide.New(ip)
		s.hostSide.Send(p, 0)
		s.Run(s.Now() + time.Microsecond)
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

type drop struct{}

func (drop) Process(_ *emu.Router, batch []emu.Packet) {
	for i := range batch {
		batch[i].Port = emu.Drop
	}
}
