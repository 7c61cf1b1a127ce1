package lane

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

var (
	noon  = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	east  = Site{Name: "east", Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8:1::/48")}}
	west  = Site{Name: "west", Prefixes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:2::/48")}}
	files = Entry{Name: "files", Client: netip.MustParsePrefix("192.0.2.0/25"), Server: netip.MustParsePrefix("198.51.100.7/32"), Port: 443}
)

func TestWhatIsWrongIsSaidBeforeAnythingIsPlanned(t *testing.T) {
	with := func(change func(*Entry)) []Entry {
		e := files
		change(&e)
		return []Entry{files, e}
	}
	both := []Site{east, west}
	for what, c := range map[string]struct {
		sites   []Site
		entries []Entry
		says    string
	}{
		"overlap":        {both, with(func(e *Entry) { e.Name, e.Client = "more", netip.MustParsePrefix("192.0.2.64/26") }), `"files" and "more" have connections in common`},
		"any port":       {both, with(func(e *Entry) { e.Name, e.Port = "any", 0 }), "in common"},
		"twice":          {both, with(func(e *Entry) { e.Port = 80 }), "is there twice"},
		"reversed":       {both, with(func(e *Entry) { e.Name, e.From, e.Until = "times", noon, noon.Add(-time.Hour) }), "before it begins"},
		"one site":       {both, with(func(e *Entry) { e.Name, e.Server = "near", netip.MustParsePrefix("192.0.2.128/25") }), `both at site "east"`},
		"nobody's":       {both, with(func(e *Entry) { e.Name, e.Server = "far", netip.MustParsePrefix("203.0.113.0/24") }), "no site has the servers' prefix 203.0.113.0/24"},
		"wider":          {both, with(func(e *Entry) { e.Name, e.Client = "all", netip.MustParsePrefix("192.0.0.0/16") }), "no site has the clients' prefix"},
		"families":       {both, with(func(e *Entry) { e.Name, e.Server = "six", netip.MustParsePrefix("2001:db8:2::/64") }), "two families"},
		"no prefix":      {both, with(func(e *Entry) { e.Name, e.Server = "none", netip.Prefix{} }), "lacks"},
		"two owners":     {[]Site{east, {Name: "other", Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.128/25")}}}, nil, `"east" and "other" both`},
		"site twice":     {[]Site{east, east}, nil, "is there twice"},
		"bits behind it": {[]Site{{Name: "odd", Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}}}, nil, "is no prefix"},
	} {
		if err := Check(c.sites, c.entries); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want that it says %q", what, err, c.says)
		}
	}
	var many []Entry
	for i := range mostAlike + 1 {
		e := files
		e.Name, e.Port = fmt.Sprint("files", i), uint16(i+1)
		many = append(many, e)
	}
	if err := Check(both, many); err == nil || !strings.Contains(err.Error(), "as many as may have the same prefixes") {
		t.Errorf("%d entries of the same prefixes: %v", len(many), err)
	}
	apart := with(func(e *Entry) { e.Name, e.From = "later", noon })
	apart[0].Until = noon
	if err := Check(both, apart); err != nil {
		t.Errorf("one entry ends when the other begins: %v", err)
	}
}

func agents(names ...string) (list []Agent) {
	for _, n := range names {
		list = append(list, Agent{Name: n, Site: map[byte]string{'e': "east", 'w': "west"}[n[0]], Here: true})
	}
	return list
}

func TestAnEntryBeginsAndEndsInTime(t *testing.T) {
	e := files
	e.From, e.Until = noon, noon.Add(time.Hour)
	s := State{Sites: []Site{east, west}, Entries: []Entry{e}, Agents: agents("e1", "w1")}
	for _, c := range []struct {
		now   time.Time
		lanes int
		next  time.Time
	}{{noon.Add(-time.Minute), 0, noon}, {noon, 1, e.Until}, {e.Until, 0, time.Time{}}} {
		s.Now = c.now
		if r := Plan(s); len(r.Lanes) != c.lanes || !r.Next.Equal(c.next) {
			t.Errorf("at %v: %d lanes, next %v; want %d, %v", c.now, len(r.Lanes), r.Next, c.lanes, c.next)
		}
	}
}

func TestTheShortestWayIsTakenAndLoadDecidesAmongAlike(t *testing.T) {
	s := State{
		Now: noon, Sites: []Site{east, west}, Entries: []Entry{files}, Agents: agents("e1", "w1", "w2", "w3"),
		RTT: map[[2]string]time.Duration{{"e1", "w1"}: 50 * time.Millisecond, {"e1", "w2"}: 55 * time.Millisecond, {"e1", "w3"}: 90 * time.Millisecond},
	}
	first := map[string]int{}
	for _, l := range Plan(s).Lanes {
		first[l.Far[0]]++
		if l.Far[2] != "w3" || len(l.Far) != 3 {
			t.Errorf("slot %d asks %v; want w3 last", l.Slot, l.Far)
		}
	}
	if first["w1"] != 4 || first["w2"] != 4 {
		t.Errorf("first asked: %v; want w1 and w2 alike", first)
	}
	s.Agents[1].Load = 0.9
	first = map[string]int{}
	for _, l := range Plan(s).Lanes {
		first[l.Far[0]]++
	}
	if first["w2"] <= first["w1"] {
		t.Errorf("first asked: %v; w1 has much to do", first)
	}
}

func TestAnEntryWithoutAgentsSaysWhy(t *testing.T) {
	s := State{Now: noon, Sites: []Site{east, west}, Entries: []Entry{files}, Agents: agents("e1", "w1")}
	s.Agents[1].Draining = true
	if r := Plan(s); len(r.Lanes) != 0 || len(r.Unserved) != 1 || !strings.Contains(r.Unserved[0].Why, `"west"`) {
		t.Errorf("%+v", r)
	}
}

// Whatever happens to agents: each connection of an entry has one lane; a lane has usable agents of the right sites; what
// can stay stays; and another controller plans the same.
func TestLanesAreWholeAndStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := State{Now: noon, Sites: []Site{east, west}, Entries: []Entry{files}, Agents: agents("e1", "e2", "w1", "w2", "w3"), RTT: map[[2]string]time.Duration{}}
		if rapid.Bool().Draw(t, "switched") {
			for i := range s.Sites {
				s.Sites[i].Switched = true
			}
			for i := range s.Agents {
				s.Agents[i].Seen = true
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			a := &s.Agents[rapid.IntRange(0, len(s.Agents)-1).Draw(t, "agent")]
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				a.Here = !a.Here
			case 1:
				a.Draining = !a.Draining
			case 2:
				a.Load = rapid.Float64Range(0, 1).Draw(t, "load")
			case 4:
				a.Site = map[string]string{"east": "west", "west": "east"}[a.Site]
			case 5:
				a.Stops ^= IPv4 // as its machine forwards
			case 3:
				s.RTT[[2]string{"e1", "w2"}] = time.Duration(rapid.IntRange(1, 200).Draw(t, "rtt")) * time.Millisecond
			}
			r := Plan(s)
			whole(t, s, r)
			other := s
			other.Agents = append([]Agent(nil), s.Agents...)
			rand.New(rand.NewPCG(1, 2)).Shuffle(len(other.Agents), func(i, j int) { other.Agents[i], other.Agents[j] = other.Agents[j], other.Agents[i] })
			if again := Plan(other); !reflect.DeepEqual(again, r) {
				t.Fatalf("the same state in another order: %+v, %+v", r, again)
			}
			s.Before = r.Lanes
		}
	})
}

func whole(t *rapid.T, s State, r Result) {
	usable, here := map[string]string{}, map[string]bool{}
	ends := func(a Agent) bool { return s.Sites[0].Switched && a.Stops&IPv4 != 0 } // what is sent by its machine
	for _, a := range s.Agents {
		here[a.Site] = here[a.Site] || a.usable() && !ends(a)
	}
	for _, a := range s.Agents {
		if ends(a) {
			continue
		}
		if a.usable() || !here[a.Site] && !a.Draining { // else one that has only lost its controller
			usable[a.Name] = a.Site
		}
	}
	slots := map[uint16]bool{}
	numbers := map[uint64]Lane{}
	for _, l := range r.Lanes {
		slots[l.Slot] = true
		if _, twice := numbers[l.Number]; twice {
			t.Fatalf("lane %d is there twice", l.Number)
		}
		numbers[l.Number] = l
		if usable[l.Near] != "east" {
			t.Fatalf("slot %d has %s at its near end", l.Slot, l.Near)
		}
		for _, f := range l.Far {
			if usable[f] != "west" {
				t.Fatalf("slot %d has %s at its far end", l.Slot, f)
			}
		}
	}
	if len(r.Unserved) == 0 && len(slots) != 8 || len(r.Unserved) > 0 && len(slots) != 0 {
		t.Fatalf("%d of 8 slots, unserved %v", len(slots), r.Unserved)
	}
	for _, was := range s.Before {
		now, there := numbers[was.Number]
		if there && usable[was.Near] == "east" && now.Near != was.Near {
			t.Fatalf("slot %d left %s, which can be used", was.Slot, was.Near)
		}
		if there && was.Measured && now.Near == was.Near && usable[was.Far[0]] == "west" && now.Far[0] != was.Far[0] {
			t.Fatalf("slot %d left %s, which can be used", was.Slot, was.Far[0])
		}
	}
}

// An agent that another site has now, or that says that it had a lane which never was its own, does not get it.
func TestALaneIsOfAgentsOfItsOwnSites(t *testing.T) {
	s := State{Now: noon, Sites: []Site{east, west}, Entries: []Entry{files}, Agents: agents("e1", "e2", "w1")}
	s.Before = Plan(s).Lanes
	for i := range s.Before {
		s.Before[i].Near, s.Before[i].Far = "w1", []string{"e2"}
	}
	s.Agents[0].Site = "elsewhere"
	for _, l := range Plan(s).Lanes {
		if l.Near != "e2" || l.Far[0] != "w1" {
			t.Errorf("lane %+v", l)
		}
	}
}

// What was chosen blindly is chosen anew once ways are measured, and stays then.
func TestAChoiceIsMadeAnewOnceWaysAreMeasured(t *testing.T) {
	s := State{Now: noon, Sites: []Site{east, west}, Entries: []Entry{files}, Agents: agents("e1", "w1", "w2")}
	first := func(want string) {
		t.Helper()
		s.Before = Plan(s).Lanes
		for _, l := range s.Before {
			if want != "" && l.Far[0] != want {
				t.Errorf("slot %d asks %v first, want %s", l.Slot, l.Far, want)
			}
		}
	}
	first("")
	s.RTT = map[[2]string]time.Duration{{"e1", "w1"}: 200 * time.Millisecond, {"e1", "w2"}: 10 * time.Millisecond}
	first("w2")
	s.RTT = map[[2]string]time.Duration{{"e1", "w1"}: time.Millisecond, {"e1", "w2"}: 10 * time.Millisecond}
	first("w2")
}

// Who is alone at its site and has lost its controller goes on, and is reckoned with.
func TestTheOnlyAgentsOfASiteAreReckonedWithWhileAway(t *testing.T) {
	s := State{Now: noon, Sites: []Site{east, west}, Entries: []Entry{files}, Agents: agents("e1", "w1", "w2")}
	s.Agents[0].Here, s.Agents[1].Here = false, false
	for _, l := range Plan(s).Lanes {
		if l.Near != "e1" || l.Far[0] != "w2" || len(l.Far) != 1 {
			t.Errorf("lane %+v", l)
		}
	}
}

func TestALaneSaysWhenItsClientsAreAccepted(t *testing.T) {
	for _, text := range append([]string{""}, Accepts...) {
		atOnce, err := ParseAccept(text)
		if err != nil || text != "" && Accept(atOnce) != text {
			t.Errorf("%q is read as %v, %v, and written as %q", text, atOnce, err, Accept(atOnce))
		}
		e := files
		e.AtOnce = atOnce
		r := Plan(State{Now: noon, Sites: []Site{east, west}, Entries: []Entry{e}, Agents: []Agent{{Name: "e1", Site: "east", Here: true}, {Name: "w1", Site: "west", Here: true}}})
		if len(r.Lanes) == 0 || r.Lanes[0].AtOnce != atOnce {
			t.Errorf("%q: %+v", text, r.Lanes)
		}
	}
	if _, err := ParseAccept("sometimes"); err == nil {
		t.Error("nobody complains about another word")
	}
}
