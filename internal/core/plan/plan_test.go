package plan

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// small is two routers in a row, the second one resolves; host i hangs on the first.
func small(t testing.TB, hosts int) *Plan {
	t.Helper()
	p := New(sid.DefaultSpace())
	for i := range 2 {
		p.SetRouter(Router{Name: routerName(i), Service: i == 1, Locator: sid.DefaultSpace().Locator(uint16(i+1) << 8)})
	}
	p.SetLinks("r0", []Link{{Port: "a", Peer: "r1", PeerPort: "b", Via: linkLocal(2)}})
	p.SetLinks("r1", []Link{{Port: "b", Peer: "r0", PeerPort: "a", Via: linkLocal(1)}})
	for i := range hosts {
		p.SetHost(Host{Name: hostName(i), Locator: at(i), Router: "r0", Port: fmt.Sprint("e", i), LinkLocal: linkLocal(0x100 + i)})
	}
	return p
}

func at(i int) sid.Locator { return sid.DefaultSpace().Locator(0x101 + uint16(i)) }

func web(port uint16) sid.Triple {
	return sid.Triple{Service: serviceN(0), Proto: sid.TCP, Port: port}
}

func serve(t testing.TB, p *Plan, hosts int) {
	t.Helper()
	p.SetService(names.Record{ID: serviceN(0)})
	for i := range hosts {
		if err := p.Register(hostName(i), web(80), Readiness{Ready: true}); err != nil {
			t.Fatal(err)
		}
	}
	p.Drain()
}

func targets(p *Plan, t sid.Triple) map[sid.Locator]uint32 {
	m := make(map[sid.Locator]uint32)
	for _, r := range p.Snapshot("r1").Resolutions {
		if r.Triple == t {
			for _, x := range r.Targets {
				m[x.Locator] = x.Weight
			}
		}
	}
	return m
}

func TestWhenEveryInstanceIsSuspectAllStay(t *testing.T) {
	p := small(t, 2)
	serve(t, p, 2)
	p.SetHostState(at(0), HostSuspect)
	p.Drain()
	if got := targets(p, web(80)); len(got) != 1 || got[at(1)] != 100 {
		t.Errorf("one suspect of two: targets %v, want the other alone", got)
	}
	p.SetHostState(at(1), HostSuspect)
	p.Drain()
	if got := targets(p, web(80)); len(got) != 2 {
		t.Errorf("both suspect: targets %v, want both kept", got)
	}
	p.SetHostState(at(1), HostGone)
	p.Drain()
	if got := targets(p, web(80)); len(got) != 1 || got[at(0)] != 100 {
		t.Errorf("one suspect, one gone: targets %v, want the suspect alone", got)
	}
}

func TestPingGoesToWhoeverServesAnyPort(t *testing.T) {
	p := small(t, 2)
	serve(t, p, 1)
	if err := p.Register(hostName(1), web(443), Readiness{Ready: true}); err != nil {
		t.Fatal(err)
	}
	p.Drain()
	if got := targets(p, sid.Triple{Service: serviceN(0)}); len(got) != 2 {
		t.Errorf("ping resolves to %v, want both hosts", got)
	}
}

func TestLastServerIsNamed(t *testing.T) {
	p := small(t, 2)
	serve(t, p, 2)
	if triple, sole := p.SoleServer(serviceN(0), "h0"); sole {
		t.Errorf("h0 is called the only server of %v beside h1", triple)
	}
	p.SetOverride(serviceN(0), "h1", Override{Drain: true})
	p.Drain()
	if triple, sole := p.SoleServer(serviceN(0), "h0"); !sole || triple != web(80) {
		t.Errorf("h0 serves alone: got %v, %v", triple, sole)
	}
}

// The nearest service router: a router with two of them at different distance.
func TestServicePrefixGoesToTheNearestServiceRouter(t *testing.T) {
	p := New(sid.DefaultSpace())
	for i := range 3 {
		p.SetRouter(Router{Name: routerName(i), Service: i > 0, Locator: sid.DefaultSpace().Locator(uint16(i+1) << 8)})
	}
	p.SetLinks("r0", []Link{{Port: "far", Peer: "r1", Via: linkLocal(2), Cost: 10}, {Port: "near", Peer: "r2", Via: linkLocal(3), Cost: 1}})
	p.SetLinks("r1", []Link{{Port: "back", Peer: "r0", Via: linkLocal(1)}})
	p.SetLinks("r2", []Link{{Port: "back", Peer: "r0", Via: linkLocal(1)}})
	p.Drain()
	for _, r := range p.Snapshot("r0").Routes {
		if r.Prefix == sid.DefaultSpace().Services && r.Port != "near" {
			t.Errorf("services leave by %s, want near", r.Port)
		}
	}
}

// A router daemon that restarts greets nobody for a while and still forwards.
func TestASilentLinkIsTheLastResort(t *testing.T) {
	p := small(t, 0)
	p.Drain()
	p.SetLinks("r0", []Link{{Port: "a", Peer: "r1", PeerPort: "b", Via: linkLocal(2), State: LinkSilent}})
	if steps := p.Drain(); len(steps) != 0 {
		t.Errorf("the only way falls silent: %+v, want no change", steps)
	}
	p.SetLinks("r0", []Link{{Port: "a", Peer: "r1", PeerPort: "b", Via: linkLocal(2), State: LinkDown}})
	if steps := p.Drain(); len(steps) == 0 {
		t.Error("the only way lost its carrier: its routes stayed")
	}
}

func TestParallelLinksTrustEachOnItsOwn(t *testing.T) {
	p := small(t, 0)
	p.SetLinks("r0", []Link{{Port: "a", Peer: "r1", PeerPort: "b", Via: linkLocal(2)}, {Port: "c", Peer: "r1", PeerPort: "d", Via: linkLocal(3)}})
	p.SetLinks("r1", []Link{{Port: "b", Peer: "r0", PeerPort: "a", State: LinkDown}, {Port: "d", Peer: "r0", PeerPort: "c", Via: linkLocal(4)}})
	p.Drain()
	for _, r := range p.Snapshot("r0").Routes {
		if r.Port != "c" {
			t.Errorf("%v leaves by %s, whose other end is down; want c", r.Prefix, r.Port)
		}
	}
}

// big is n services of ten instances each, on hosts of ten routers.
func big(t testing.TB, n int) *Plan {
	t.Helper()
	p := New(sid.DefaultSpace())
	for i := range 10 {
		p.SetRouter(Router{Name: routerName(i), Service: i == 0, Locator: sid.DefaultSpace().Locator(uint16(i+1) << 8)})
	}
	for i := range 100 {
		p.SetHost(Host{Name: hostName(i), Locator: spread(i), Router: routerName(i % 10), Port: fmt.Sprint("e", i)})
	}
	for s := range n {
		p.SetService(names.Record{ID: serviceN(s)})
		for i := range 10 {
			triple := sid.Triple{Service: serviceN(s), Proto: sid.TCP, Port: 80}
			if err := p.Register(hostName((s+i)%100), triple, Readiness{Ready: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

func spread(i int) sid.Locator {
	i %= 100
	return sid.DefaultSpace().Locator(uint16(i%10+1)<<8 | uint16(i/10+1))
}

// Work is counted in what is allocated, never in time: other programs share the machine.
func TestOneChangeTouchesOneTripleHoweverManyServices(t *testing.T) {
	cost := func(services int) float64 {
		p := big(t, services)
		p.Drain()
		ready, triple := true, sid.Triple{Service: serviceN(services / 2), Proto: sid.TCP, Port: 80}
		return testing.AllocsPerRun(100, func() {
			ready = !ready
			_ = p.Register(hostName(services/2%100), triple, Readiness{Ready: ready})
			checkOneTriple(t, p.Drain(), triple)
		})
	}
	few, many := cost(10), cost(10_000)
	t.Logf("allocations per change: %v among 10 services, %v among 10,000", few, many)
	if many > few+5 {
		t.Errorf("a change allocates %v times among 10,000 services, %v among 10", many, few)
	}
}

func checkOneTriple(t *testing.T, steps []Step, triple sid.Triple) {
	t.Helper()
	for _, s := range steps {
		for _, r := range s.Rules.Resolutions {
			if r.Triple != triple && r.Triple != (sid.Triple{Service: triple.Service}) {
				t.Fatalf("a change of %v touched %v", triple, r.Triple)
			}
		}
		for _, r := range s.Rules.Services {
			if r.Service != triple.Service {
				t.Fatalf("a change of %v touched service %v", triple, r.Service)
			}
		}
		if len(s.Rules.Routes)+len(s.Rules.Probes) > 0 {
			t.Fatalf("a change of %v touched routes or probes: %+v", triple, s.Rules)
		}
	}
}

func TestTenThousandServicesLoad(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p := big(t, 10_000)
	p.Drain()
	runtime.GC()
	runtime.ReadMemStats(&after)
	s := p.Snapshot(routerName(0))
	if len(s.Services) != 10_000 || len(s.Resolutions) != 20_000 {
		t.Errorf("%d services and %d resolutions, want 10000 and 20000 (one triple and ping each)", len(s.Services), len(s.Resolutions))
	}
	t.Logf("%d bytes per instance", (after.HeapAlloc-before.HeapAlloc)/100_000)
	runtime.KeepAlive(p)
}

func BenchmarkOneChangeAmong10000Services(b *testing.B) {
	p := big(b, 10_000)
	p.Drain()
	r := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		s := r.IntN(10_000)
		triple := sid.Triple{Service: serviceN(s), Proto: sid.TCP, Port: 80}
		_ = p.Register(hostName(s%100), triple, Readiness{Ready: r.IntN(2) == 0})
		p.Drain()
	}
}

func BenchmarkLoad10000Services(b *testing.B) {
	for b.Loop() {
		big(b, 10_000).Drain()
	}
}
