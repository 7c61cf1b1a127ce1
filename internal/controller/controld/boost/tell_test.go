package boost

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/lane"
)

func TestAnAgentIsToldItsLanesAndWhoIsAtTheOtherSite(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1, w1 := n.join("e1"), n.join("w1")
	e, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/25", Server: "198.51.100.7", Port: 443})
	if err != nil || e.State != boosts || len(e.Lanes) != 1 {
		t.Fatalf("%v, %v", e, err)
	}
	for _, s := range []*stream{e1, w1} {
		told := s.told()
		if len(told.GetLanes()) != 1 || told.Lanes[0].Near != "e1" || told.Lanes[0].Far[0] != "w1" || told.Lanes[0].Server != "198.51.100.7/32" {
			t.Errorf("%s is told %v", s.name, told)
		}
		if len(told.GetAgents()) != 1 || told.Agents[0].Name == s.name {
			t.Errorf("%s is told of the agents %v", s.name, told.GetAgents())
		}
	}
	n.Flush()
	if again := e1.told(); again != nil {
		t.Errorf("nothing has changed, and it is told %v", again)
	}
	if _, err := n.API().DenyBoost(t.Context(), connect.NewRequest(&apiv1.DenyBoostRequest{Name: "files"})); err != nil {
		t.Fatal(err)
	}
	if told := e1.told(); told == nil || len(told.Lanes) != 0 || len(told.Agents) != 1 {
		t.Errorf("after deny it is told %v; want no lane, and the agent, whose sessions go on", told)
	}
}

// Agents are told when clients are accepted; one of before takes the lane for any other.
func TestAnAgentIsToldWhenClientsAreAccepted(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1 := n.join("e1")
	n.join("w1")
	for name, accept := range map[string]string{"a": "", "b": lane.Answered, "c": lane.AtOnce} {
		e, err := n.allow(&apiv1.BoostEntry{Name: name, Client: "192.0.2.0/25", Server: "198.51.100.7", Port: uint32(name[0]), Accept: accept})
		if want := cmp.Or(accept, lane.Answered); err != nil || e.Accept != want {
			t.Errorf("%v, %v", e, err)
		}
		told := e1.told().GetLanes()
		i := slices.IndexFunc(told, func(l *apiv1.BoostLane) bool { return l.Entry == name })
		if i < 0 || told[i].AtOnce != (accept == lane.AtOnce) {
			t.Errorf("accept %q: it is told %v", accept, told)
		}
	}
}

// Who is of no site carries nothing, and hears of nobody: operators say which agents serve which hosts, not agents.
func TestAnAgentThatNoSiteNamesIsToldNothing(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	n.join("e1")
	n.join("w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	if told := n.join("xx").told(); len(told.GetLanes())+len(told.GetAgents()) != 0 {
		t.Errorf("it is told %v", told)
	}
}

// A lane changes hands without a gap: far agents have it before near ones ask them, and lose it after these have stopped.
func TestALaneChangesHandsWithoutAGap(t *testing.T) {
	n := newNetwork(t)
	n.byHand = true
	n.sites()
	e1, e2, w1 := n.join("e1"), n.join("e2"), n.join("w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	if told := append(e1.told().GetLanes(), e2.told().GetLanes()...); len(told) != 0 {
		t.Errorf("before the far agent has its lanes near ones are told %v", told)
	}
	if told := w1.applies(); len(told.GetLanes()) != 8 {
		t.Fatalf("the far agent is told %v", told)
	}
	if a, b := len(e1.applies().GetLanes()), len(e2.applies().GetLanes()); a+b != 8 || a != b {
		t.Fatalf("near agents are told %d and %d lanes", a, b)
	}
	if _, err := n.API().DrainBoostAgent(t.Context(), connect.NewRequest(&apiv1.DrainBoostAgentRequest{Name: "e1"})); err != nil {
		t.Fatal(err)
	}
	told := w1.applies()
	both := 0
	for _, l := range told.GetLanes() {
		if l.Near == "e2" && slices.Equal(l.AlsoNear, []string{"e1"}) {
			both++
		}
	}
	if len(told.GetLanes()) != 8 || both != 4 {
		t.Errorf("the far agent is told %v; want four lanes that both may ask by", told)
	}
	if told := e1.applies(); !told.GetDraining() || len(told.Lanes) != 0 {
		t.Errorf("who drains is told %v", told)
	}
	for _, l := range w1.applies().GetLanes() {
		if l.Near != "e2" || len(l.AlsoNear) != 0 {
			t.Errorf("once e1 has stopped the far agent has %v", l)
		}
	}
	if told := e2.applies(); len(told.GetLanes()) != 8 {
		t.Errorf("e2 is told %v", told)
	}
}

// A far agent that does not answer keeps nobody waiting for long, and a near one that does not say that it has stopped keeps
// no lane by that.
func TestNobodyIsWaitedForForEver(t *testing.T) {
	n := newNetwork(t)
	n.byHand = true
	n.sites()
	e1, w1 := n.join("e1"), n.join("w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	n.wait(farPatience)
	if told := e1.applies(); len(told.GetLanes()) != 1 {
		t.Fatalf("the near agent is told %v", told)
	}
	w1.applies()
	if _, err := n.API().DenyBoost(t.Context(), connect.NewRequest(&apiv1.DenyBoostRequest{Name: "files"})); err != nil {
		t.Fatal(err)
	}
	if told := w1.told(); len(told.GetLanes()) != 0 && told != nil {
		t.Errorf("at once the far agent is told %v", told)
	}
	n.wait(Patience)
	if told := w1.told(); told == nil || len(told.Lanes) != 0 {
		t.Errorf("at last the far agent is told %v", told)
	}
}

// Who cannot take what it is told is told again in a while: what was in the way may be over.
func TestAnAgentInTroubleIsToldAgain(t *testing.T) {
	n := newNetwork(t)
	n.byHand = true
	n.sites()
	e1 := n.join("e1")
	n.join("w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	applied := func(why string) {
		told := e1.told()
		if told == nil {
			t.Fatal("it is told nothing")
		}
		n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Applied{Applied: &apiv1.BoostApplied{Generation: told.Generation, Error: why}}})
	}
	applied("no room")
	if a := n.list().Agents[0]; a.Current || a.Error != "no room" {
		t.Errorf("agent: %v", a)
	}
	n.wait(Patience)
	applied("")
	if a := n.list().Agents[0]; !a.Current || a.Error != "" {
		t.Errorf("agent: %v", a)
	}
	n.wait(Patience)
	if told := e1.told(); told != nil {
		t.Errorf("it has taken all, and is told %v", told)
	}
}

// Agents of a site change hands: who is named now gets the lanes, who is not any more loses them; a change of prefixes alone
// leaves the agents.
func TestASiteGetsOtherAgents(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	set := func(s *apiv1.BoostSite) *apiv1.BoostSite {
		t.Helper()
		answer, err := n.API().SetBoostSite(t.Context(), connect.NewRequest(s))
		if err != nil {
			t.Fatal(err)
		}
		return answer.Msg
	}
	e1, xx := n.join("e1"), n.join("xx")
	w1 := n.join("w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	if s := set(&apiv1.BoostSite{Name: "east", Prefixes: []string{"192.0.2.0/24", "203.0.113.0/24"}}); !slices.Equal(s.Agents, []string{"e1", "e2"}) {
		t.Errorf("with other prefixes alone: %v", s)
	}
	e1.told()
	set(&apiv1.BoostSite{Name: "east", Prefixes: []string{"192.0.2.0/24"}, Agents: []string{"xx"}})
	if told := e1.told(); told == nil || len(told.Lanes)+len(told.Agents) != 0 {
		t.Errorf("e1 is told %v", told)
	}
	for _, s := range []*stream{xx, w1} {
		if told := s.told(); len(near(told)) != 1 || near(told)[0] != "xx" {
			t.Errorf("%s is told %v", s.name, told)
		}
	}
}

func TestADrainedAgentLeavesItsLanesAndIsToldSo(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1 := n.join("e1")
	e2 := n.join("e2")
	n.join("w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	if both := near(e1.told()); !slices.Equal(both, []string{"e1"}) { // an agent hears of its own lanes
		t.Errorf("e1 hears of lanes of %v", both)
	}
	drain := func(undrain bool) *apiv1.BoostAgent {
		a, err := n.API().DrainBoostAgent(t.Context(), connect.NewRequest(&apiv1.DrainBoostAgentRequest{Name: "e1", Undrain: undrain}))
		if err != nil {
			t.Fatal(err)
		}
		return a.Msg
	}
	if a := drain(false); a.State != "draining" {
		t.Errorf("agent: %v", a)
	}
	if told := e1.told(); told == nil || !told.Draining || len(told.Lanes) != 0 {
		t.Errorf("e1 is told %v", told)
	}
	if told := e2.told(); len(told.GetLanes()) != 8 {
		t.Errorf("e2 is told %v; want all eight lanes", told)
	}
	if a := drain(true); a.State != "here" {
		t.Errorf("agent: %v", a)
	}
}

// An agent that loses its stream, as all do when their controller restarts, keeps its lanes for a while; one that does not
// come back loses them to another one.
func TestAnAgentThatIsAwayKeepsItsLanesForAWhile(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1, w1 := n.join("e1"), n.join("w1")
	n.join("w2")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	first := e1.told()
	n.Lost("w1", w1.Session, errors.New("cut"))
	n.Flush()
	if told := e1.told(); told != nil {
		t.Errorf("at once it is told %v", told)
	}
	n.wait(Patience)
	told := e1.told()
	if told == nil || len(told.Agents) != 2 {
		t.Fatalf("it is told %v; want other lanes, and both agents: what w1 carries may go on", told)
	}
	for i, l := range told.Lanes {
		if l.Far[0] != "w2" || l.Number != first.Lanes[i].Number {
			t.Errorf("lane %v, was %v", l, first.Lanes[i])
		}
	}
	if a := n.list().Agents; a[1].Name != "w1" || a[1].State != "away" {
		t.Errorf("agents: %v", a)
	}
}

// A leader that begins knows agents by its store. It tells nothing before they have come, and then who had what, has it.
func TestANewLeaderLeavesLanesWhereTheyAre(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1 := n.join("e1")
	n.join("e2")
	n.join("w1")
	n.join("w2")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	before := e1.told()
	stored := store.Boost{}
	for _, s := range n.Boost.sites {
		stored.Sites = append(stored.Sites, s)
	}
	for _, e := range n.entries {
		stored.Entries = append(stored.Entries, e)
	}
	for _, a := range n.agents {
		stored.Agents = append(stored.Agents, a.BoostAgent)
	}
	next := newNetwork(t)
	next.Restore(stored, 2)
	next.Flush()
	w1 := next.join("w1")
	w1.n.loaded(next.agents["w1"], &apiv1.BoostLoad{Load: 0.9, Trunks: []*apiv1.BoostTrunk{{Agent: "e2", RttUs: 1}}}) // would plan otherwise
	again := next.join("e1", before.Lanes...)
	if told := again.told(); told != nil {
		t.Fatalf("before all have come it is told %v", told)
	}
	if e := next.list().Entries[0]; e.State != waits || e.Why == "" {
		t.Errorf("the entry is %v", e)
	}
	next.wait(Patience) // e2 and w2 have gone for good
	told := again.told()
	if told == nil || told.Generation <= before.Generation {
		t.Fatalf("told %v after %v", told, before)
	}
	was := map[uint64]*apiv1.BoostLane{}
	for _, l := range before.Lanes {
		was[l.Number] = l
	}
	for _, l := range told.Lanes {
		if w := was[l.Number]; w != nil && w.Far[0] == "w1" && (l.Far[0] != "w1" || l.Near != "e1") {
			t.Errorf("lane %v was %v", l, w)
		}
	}
}

func TestAnEntryBeginsAndEndsByTheClock(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1 := n.join("e1")
	n.join("w1")
	from, until := n.now.Add(time.Hour), n.now.Add(2*time.Hour)
	e, err := n.allow(&apiv1.BoostEntry{Name: "nightly", Client: "192.0.2.0/24", Server: "198.51.100.0/24", FromUnixMs: from.UnixMilli(), UntilUnixMs: until.UnixMilli()})
	if err != nil || e.State != waits || len(e.Lanes) != 0 {
		t.Fatalf("before its time: %v, %v", e, err)
	}
	for _, c := range []struct {
		pass  time.Duration
		state string
		lanes int
	}{{59 * time.Minute, waits, 0}, {time.Minute, boosts, 1}, {30 * time.Minute, boosts, 1}, {30 * time.Minute, over, 0}} {
		e1.told()
		n.wait(c.pass)
		if e := n.list().Entries[0]; e.State != c.state || len(e.Lanes) != c.lanes {
			t.Errorf("at %v: %v, want %s with %d lanes", n.now, e, c.state, c.lanes)
		}
	}
	if told := e1.told(); told == nil || len(told.Lanes) != 0 {
		t.Errorf("at its end the agent is told %v", told)
	}
	n.wait(time.Minute) // the last look
	if len(n.later) != 0 {
		t.Error("a timer runs though nothing begins or ends any more")
	}
}
