package fib

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// A flight is a packet under way: it keeps the class that it got when it entered or when a router asked anew.
type flight struct {
	to         netip.Addr
	class      Class
	generation uint64 // when it got the class
}

// A world is classes beside what they must equal: an oracle for each router.
type world struct {
	classes *Classes
	oracles []oracle
	flights []*flight
}

func newWorld(routers int) *world {
	w := &world{classes: NewClasses(routers)}
	for range routers {
		w.oracles = append(w.oracles, oracle{})
	}
	return w
}

// enter lets a packet in.
func (w *world) enter(a netip.Addr) {
	if a.IsValid() {
		w.flights = append(w.flights, &flight{a, w.classes.Class(a), w.classes.Generation()})
	}
}

// forward is what a router does with a packet in the hot loop.
func (w *world) forward(t *rapid.T, router int, f *flight) Hop {
	v := w.classes.View(router)
	h := v.Hop(f.class)
	if h == Again {
		f.class, f.generation = w.classes.Class(f.to), w.classes.Generation()
		if h = v.Hop(f.class); h == Again {
			t.Fatalf("router %d says Again to %v, class %d, which is new", router, f.to, f.class)
		}
	}
	return h
}

// check sends every packet to every router.
func (w *world) check(t *rapid.T) {
	for r, o := range w.oracles {
		for _, f := range w.flights {
			was := f.class
			if got, want := w.forward(t, r, f), o.lookup(f.to); got != want {
				t.Fatalf("router %d: %v, class %d then %d: %v, the oracle says %v of %v", r, f.to, was, f.class, got, want, o)
			}
		}
	}
}

// oldest is the generation of the packet that was classified the longest time ago.
func (w *world) oldest() uint64 {
	g := w.classes.Generation()
	for _, f := range w.flights {
		g = min(g, f.generation)
	}
	return g
}

func (w *world) set(t *rapid.T, router int, r Route) {
	err := w.classes.Set(router, r.Prefix, r.Hop)
	if errors.Is(err, ErrUndeclared) {
		if err = w.classes.Declare(r.Prefix); err != nil {
			t.Fatal(err)
		}
		err = w.classes.Set(router, r.Prefix, r.Hop)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.oracles[router][r.Prefix] = r.Hop
}

func (w *world) load(t *rapid.T, router int) {
	var routes []Route
	for range rapid.IntRange(0, 40).Draw(t, "routes") {
		routes = append(routes, Route{anyPrefix().Draw(t, "prefix"), anyHop().Draw(t, "hop")})
	}
	var prefixes []netip.Prefix
	w.oracles[router] = oracle{}
	for _, r := range routes {
		prefixes = append(prefixes, r.Prefix)
		w.oracles[router][r.Prefix] = r.Hop
	}
	if err := w.classes.Declare(prefixes...); err != nil {
		t.Fatal(err)
	}
	if err := w.classes.Load(router, routes); err != nil {
		t.Fatal(err)
	}
}

func (w *world) change(t *rapid.T) {
	router := rapid.IntRange(0, len(w.oracles)-1).Draw(t, "router")
	p := anyPrefix().Draw(t, "prefix")
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		w.load(t, router)
	case 1:
		w.classes.Trim()
	case 2:
		w.classes.Release(w.oldest())
	case 3: // the packet arrives
		if n := len(w.flights); n > 0 {
			w.flights = slices.Delete(w.flights, 0, rapid.IntRange(1, n).Draw(t, "arrive"))
		}
	case 4, 5:
		p = some(t, w.oracles[router], p)
		if _, there := w.oracles[router][p]; w.classes.Delete(router, p) != there {
			t.Fatalf("Delete(%v) says it was not as it was", p)
		}
		delete(w.oracles[router], p)
	default:
		w.set(t, router, Route{p, anyHop().Draw(t, "hop")})
	}
	for _, a := range near(p) {
		w.enter(a)
	}
	w.enter(anyAddr().Draw(t, "address"))
}

func TestClassesEqualTheTablesForPacketsOfAnyAge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(1, 5).Draw(t, "routers"))
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			if rapid.Bool().Draw(t, "look") { // else packets get older without meeting a router
				w.check(t)
			}
			w.change(t)
		}
		w.check(t)
		w.same(t)
	})
}

// same holds what the classes say of the routers' own routes against the oracles.
func (w *world) same(t *rapid.T) {
	for r, o := range w.oracles {
		n := 0
		for p, h := range w.classes.Routes(r) {
			if got, ok := w.classes.Get(r, p); !ok || got != h || o[p] != h {
				t.Fatalf("router %d: %v goes to %v, and %v, %v alone; the oracle says %v", r, p, h, got, ok, o[p])
			}
			n++
		}
		if n != len(o) {
			t.Fatalf("router %d has %d routes, the oracle %d", r, n, len(o))
		}
	}
}

func TestATableOfTheRoutesEqualsTheClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(3)
		for range 3 {
			w.load(t, rapid.IntRange(0, 2).Draw(t, "router"))
		}
		for r := range w.oracles {
			var routes []Route
			for p, h := range w.classes.Routes(r) {
				routes = append(routes, Route{p, h})
			}
			tab := New()
			if err := tab.Load(routes); err != nil {
				t.Fatal(err)
			}
			for range 50 {
				a := anyAddr().Draw(t, "address")
				if table, class := tab.Lookup(a), w.classes.View(r).Hop(w.classes.Class(a)); table != class {
					t.Fatalf("router %d: %v goes to %v by table, %v by class", r, a, table, class)
				}
			}
		}
	})
}

func TestTooManyPrefixesChangeNothing(t *testing.T) {
	c := NewClasses(2)
	var many []netip.Prefix
	for i := range MaxClasses {
		many = append(many, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32))
	}
	if err := c.Declare(many[:65000]...); err != nil {
		t.Fatal(err)
	}
	a := many[7].Addr()
	if err := c.Set(1, many[7], First); err != nil {
		t.Fatal(err)
	}
	before := c.Class(a)
	if err := c.Declare(many...); !errors.Is(err, ErrFull) {
		t.Fatalf("%d prefixes: %v", len(many), err)
	}
	if after := c.Class(a); after != before || c.View(1).Hop(after) != First || c.View(0).Hop(after) != None {
		t.Errorf("class %d became %d, its hops %v and %v", before, after, c.View(1).Hop(after), c.View(0).Hop(after))
	}
	c.Trim()
	c.Release(c.Generation())
	if err := c.Declare(many[:65000]...); err != nil || c.View(1).Hop(c.Class(a)) != First {
		t.Errorf("after Trim and Release: %v, hop %v", err, c.View(1).Hop(c.Class(a)))
	}
}

func TestWhatIsUndeclaredIsRefused(t *testing.T) {
	c := NewClasses(1)
	p := netip.MustParsePrefix("2001:db8::/32")
	if err := c.Set(0, p, First); !errors.Is(err, ErrUndeclared) {
		t.Errorf("Set: %v", err)
	}
	if err := c.Load(0, []Route{{p, First}}); !errors.Is(err, ErrUndeclared) {
		t.Errorf("Load: %v", err)
	}
	if err := c.Declare(p, netip.Prefix{}); err == nil || c.Len() != 2 {
		t.Errorf("Declare of nothing: %v, %d classes", err, c.Len())
	}
	if err := c.Declare(p); err != nil {
		t.Fatal(err)
	}
	if c.Set(0, p, Again) == nil || c.Delete(0, p) || c.Delete(0, netip.Prefix{}) {
		t.Error("a route to Again was set, or one deleted that is not there")
	}
}

// FuzzClasses changes the routes of three routers as the bytes say, as FuzzTable does.
func FuzzClasses(f *testing.F) {
	f.Add([]byte("\x00\x20abcd\x01\x10abcd\x22\x08abce\x80\x20abcd\xc0\x20abcd"))
	f.Add([]byte("\x04\x7fabcd\x15\x40abcd\x26\x41abcd\xa7\x00abcd\xe4\x7fabcd"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		c, oracles := NewClasses(3), []oracle{{}, {}, {}}
		aged := map[netip.Addr]Class{}
		for ; len(ops) >= 6 && len(aged) < 300; ops = ops[6:] {
			p, r, h := fuzzed(ops), int(ops[0]>>3)%3, First+Hop(ops[1])
			switch ops[0] >> 6 {
			case 3:
				c.Trim() // numbers are not released: packets here live for ever
			case 2:
				c.Delete(r, p)
				delete(oracles[r], p)
			default:
				oracles[r][p] = h
				if err := errors.Join(c.Declare(p), c.Set(r, p, h)); err != nil {
					t.Fatal(err)
				}
			}
			fuzzedFlights(t, c, oracles, aged)
			for _, a := range near(p) {
				if _, known := aged[a]; a.IsValid() && !known {
					aged[a] = c.Class(a)
				}
			}
		}
		fuzzedFlights(t, c, oracles, aged)
	})
}

func fuzzedFlights(t *testing.T, c *Classes, oracles []oracle, aged map[netip.Addr]Class) {
	for a, class := range aged {
		for r, o := range oracles {
			h := c.View(r).Hop(class)
			if h == Again {
				h = c.View(r).Hop(c.Class(a))
			}
			if h != o.lookup(a) {
				t.Fatalf("router %d: %v of class %d: %v, the oracle says %v of %v", r, a, class, h, o.lookup(a), o)
			}
		}
	}
}

// network declares and loads as many prefixes as routers, to which each router has a route.
func network(tb testing.TB, routers int) (*Classes, []Route) {
	routes := sample(rand.New(rand.NewPCG(1, 2)), routers, false)
	slices.SortFunc(routes, func(a, b Route) int { return a.Prefix.Compare(b.Prefix) })
	c := NewClasses(routers)
	prefixes := make([]netip.Prefix, len(routes))
	for i, r := range routes {
		prefixes[i] = r.Prefix
	}
	if err := c.Declare(prefixes...); err != nil {
		tb.Fatal(err)
	}
	for r := range routers {
		if err := c.Load(r, routes); err != nil {
			tb.Fatal(err)
		}
	}
	return c, routes
}

func BenchmarkCompile4000x4000(b *testing.B) {
	start := cpu()
	for range b.N {
		c, _ := network(b, 4000)
		b.ReportMetric(float64(c.Bytes())/(1<<20), "MiB")
	}
	report(b, start)
}

func BenchmarkClassesOf4000(b *testing.B) {
	c, routes := network(b, 4000)
	rng := rand.New(rand.NewPCG(3, 4))
	b.Run("set", func(b *testing.B) {
		start := cpu()
		for i := range b.N {
			_ = c.Set(i%4000, routes[i*7%4000].Prefix, Hop(4+i%9))
		}
		report(b, start)
	})
	b.Run("declare", func(b *testing.B) {
		start := cpu()
		for i := range b.N {
			if i%1000 == 0 {
				c.Trim()
				c.Release(c.Generation())
			}
			_ = c.Declare(sample(rng, 1, false)[0].Prefix)
		}
		report(b, start)
	})
	b.Run("classify", func(b *testing.B) {
		to := within(rng, routes, 4096)
		start := cpu()
		for i := range b.N {
			a := &to[i&4095]
			use = Hop(c.Class6(a[0], a[1]))
		}
		report(b, start)
	})
	b.Run("hop", func(b *testing.B) {
		var classes [4096]Class
		for i, a := range within(rng, routes, 4096) {
			classes[i] = c.Class6(a[0], a[1])
		}
		sum, v := Hop(0), c.View(17)
		start := cpu()
		for i := range b.N {
			sum += v.Hop(classes[i&4095])
		}
		report(b, start)
		use = sum
	})
}

func TestManyClassesAreThoseOfOneByOne(t *testing.T) {
	c, routes := network(t, 300)
	rng := rand.New(rand.NewPCG(5, 6))
	var keys []Key
	for _, a := range append(within(rng, routes, 500), [2]uint64{1, 2}) {
		keys = append(keys, Key{a[0], a[1]})
	}
	classes := make([]Class, len(keys))
	c.Class6All(keys, classes)
	for i, k := range keys {
		if one := c.Class6(k.Hi, k.Lo); classes[i] != one {
			t.Fatalf("%x: class %d among many, %d alone", k, classes[i], one)
		}
	}
}
