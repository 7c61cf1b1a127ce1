package boost

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/trust"
)

// A network is an open one, as its agents of boost see it, with a clock of its own.
type network struct {
	*Boost
	t      *testing.T
	now    time.Time
	later  []func()
	by     []*stream // of agents
	byHand bool      // agents take what they are told when the test says so
	events []string
}

func newNetwork(t *testing.T) *network {
	n := &network{t: t, now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	n.Boost = New(Config{
		Trust: "open", Patience: Patience, Members: n, Events: n, Saver: n, Loop: n, Orders: n,
		Accept: func() *apiv1.BoostJoined { return &apiv1.BoostJoined{Network: "test", Trust: "open"} },
	})
	n.clock = func() time.Time { return n.now }
	return n
}

func (n *network) Fresh(gate.Peer) *apiv1.Credential                              { return nil }
func (n *network) Succeeded(trust.Role, string, []byte) bool                      { return false }
func (n *network) Member(trust.Role, string) (store.Member, bool)                 { return store.Member{}, false }
func (n *network) RenewLater(context.Context, gate.Peer, func(*apiv1.Credential)) {}
func (n *network) Later(...store.Change)                                          {}
func (n *network) After(_ time.Duration, f func())                                { n.later = append(n.later, f) }
func (n *network) Tell(kind, subject, text string, _ ...string) {
	n.events = append(n.events, kind+" "+subject+": "+text)
}

func (n *network) Ask(_ context.Context, f func()) error {
	f()
	n.Flush()
	return nil
}

func (n *network) Do(_ context.Context, check func() (orders.Change, error)) error {
	c, err := check()
	if err != nil {
		return orders.Error(err)
	}
	if len(c.Records) == 0 || len(c.Says) == 0 {
		n.t.Error("an order saves nothing, or nobody can read who gave it")
	}
	c.Effect()
	n.Flush()
	return nil
}

// wait lets time pass, and does what was to be done by then.
func (n *network) wait(d time.Duration) {
	n.now = n.now.Add(d)
	due := n.later
	n.later = nil
	for _, f := range due {
		f()
	}
	n.Flush()
}

// sites makes east, served by agents e1 and e2, and west, served by w1 and w2.
func (n *network) sites() {
	n.t.Helper()
	for _, s := range []*apiv1.BoostSite{
		{Name: "east", Prefixes: []string{"192.0.2.0/24"}, Agents: []string{"e1", "e2"}},
		{Name: "west", Prefixes: []string{"198.51.100.0/24"}, Agents: []string{"w1", "w2"}},
	} {
		if _, err := n.API().SetBoostSite(n.t.Context(), connect.NewRequest(s)); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *network) allow(e *apiv1.BoostEntry) (*apiv1.BoostEntry, error) {
	answer, err := n.API().AllowBoost(n.t.Context(), connect.NewRequest(e))
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

func (n *network) list() *apiv1.ListBoostResponse {
	n.t.Helper()
	all, err := n.API().ListBoost(n.t.Context(), connect.NewRequest(&apiv1.ListBoostRequest{}))
	if err != nil {
		n.t.Fatal(err)
	}
	return all.Msg
}

func joinOf(name string) *apiv1.BoostJoin {
	last := 1 + strings.Index("e1 e2 w1 w2 xx", name)/3
	return &apiv1.BoostJoin{Name: name, Door: fmt.Sprintf("203.0.113.%d:23731", last), Key: make([]byte, 32), BootId: name, Version: "1"}
}

// join lets an agent in.
func (n *network) join(name string, held ...*apiv1.BoostLane) *stream {
	n.t.Helper()
	j := joinOf(name)
	j.Held = held
	s := &stream{Session: session.New[apiv1.BoostOrder](n.t.Context(), 100), n: n, name: name}
	n.by = append(n.by, s)
	if no := n.Join(s.Session, j); no != nil {
		n.t.Fatalf("%s is refused: %s", name, no.Reason)
	}
	n.Flush()
	return s
}

// A stream is an agent's, whose orders are read.
type stream struct {
	*Session
	n    *network
	name string
	last *apiv1.BoostLanes // that it was told, and the test has not asked for
}

var errRead = errors.New("all was read")

// told is the last word on its lanes that an agent was told since it was asked last, once all agents have taken what they
// were told; nil: none.
func (s *stream) told() (last *apiv1.BoostLanes) {
	for again := !s.n.byHand; again; {
		again = false
		for _, o := range s.n.by {
			if told := o.applies(); told != nil {
				o.last, again = told, true
			}
		}
	}
	if s.n.byHand {
		s.last = s.read()
	}
	last, s.last = s.last, nil
	return last
}

// read is the last word that has not been read.
func (s *stream) read() (last *apiv1.BoostLanes) {
	end := &apiv1.BoostOrder{}
	s.Send(end)
	_ = s.Write(func(o *apiv1.BoostOrder) error {
		if o == end {
			return errRead
		}
		if l := o.GetLanes(); l != nil {
			last = l
		}
		return nil
	})
	return last
}

// applies has an agent take what it was told last, and returns that.
func (s *stream) applies() *apiv1.BoostLanes {
	s.n.t.Helper()
	told := s.read()
	if told != nil {
		s.n.Report(s.name, s.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Applied{Applied: &apiv1.BoostApplied{Generation: told.Generation}}})
		s.n.Flush()
	}
	return told
}

func near(l *apiv1.BoostLanes) (all []string) {
	for _, x := range l.GetLanes() {
		if !slices.Contains(all, x.Near) {
			all = append(all, x.Near)
		}
	}
	slices.Sort(all)
	return all
}

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

func TestWhoMayNotJoinHearsWhy(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	n.join("e1")
	for what, c := range map[string]struct {
		change func(*apiv1.BoostJoin)
		says   string
	}{
		"name":       {func(j *apiv1.BoostJoin) { j.Name = "West 1" }, "want letters, digits and hyphens"},
		"twice":      {func(j *apiv1.BoostJoin) { j.Name, j.BootId = "e1", "another" }, "connected already"},
		"same door":  {func(j *apiv1.BoostJoin) { j.Door = joinOf("e1").Door }, "agent e1 has the door"},
		"any door":   {func(j *apiv1.BoostJoin) { j.Door = "0.0.0.0:1" }, "want an address of one machine"},
		"no door":    {func(j *apiv1.BoostJoin) { j.Door = "here" }, "want an address of one machine"},
		"zone":       {func(j *apiv1.BoostJoin) { j.Door = "[fe80::1%" + strings.Repeat("z", 1<<20) + "]:1" }, "want an address of one machine"},
		"no key":     {func(j *apiv1.BoostJoin) { j.Key = nil }, "a key of 0 bytes"},
		"long":       {func(j *apiv1.BoostJoin) { j.Version = strings.Repeat("x", 300) }, "more than 256 bytes"},
		"other kind": {func(j *apiv1.BoostJoin) { j.Speaks = &apiv1.Versions{From: 99, To: 99} }, "version"},
	} {
		j := joinOf("w1")
		c.change(j)
		s := session.New[apiv1.BoostOrder](t.Context(), 10)
		if no := n.Join(s, j); no == nil || !strings.Contains(no.Reason, c.says) {
			t.Errorf("%s: %v; want that it says %q", what, no, c.says)
		}
	}
	if all := n.list().Agents; len(all) != 1 {
		t.Errorf("who was refused is known: %v", all)
	}
}

func TestWhatIsWrongIsSaidAndNothingIsChanged(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24", Port: 80}); err != nil {
		t.Fatal(err)
	}
	before := n.list().String()
	api := n.API()
	for what, c := range map[string]struct {
		do   func() error
		code connect.Code
		says string
	}{
		"overlap": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "192.0.2.9", Server: "198.51.100.9"})
			return err
		}, connect.CodeInvalidArgument, "in common"},
		"same name": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.9", Server: "198.51.100.9", Port: 1})
			return err
		}, connect.CodeFailedPrecondition, "deny it first"},
		"bits": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "192.0.2.9/24", Server: "198.51.100.9"})
			return err
		}, connect.CodeInvalidArgument, "192.0.2.0/24 meant"},
		"nobody's": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "10.0.0.0/8", Server: "198.51.100.9"})
			return err
		}, connect.CodeInvalidArgument, "no site has"},
		"reversed": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "192.0.2.9", Server: "198.51.100.9", Port: 1, FromUnixMs: 2000, UntilUnixMs: 1000})
			return err
		}, connect.CodeInvalidArgument, "before it begins"},
		"port": {func() error {
			_, err := n.allow(&apiv1.BoostEntry{Name: "b", Client: "192.0.2.9", Server: "198.51.100.9", Port: 70000})
			return err
		}, connect.CodeInvalidArgument, "port 70000"},
		"needed": {func() error {
			_, err := api.RemoveBoostSite(t.Context(), connect.NewRequest(&apiv1.RemoveBoostSiteRequest{Name: "west"}))
			return err
		}, connect.CodeFailedPrecondition, "an entry needs"},
		"no site": {func() error {
			_, err := api.RemoveBoostSite(t.Context(), connect.NewRequest(&apiv1.RemoveBoostSiteRequest{Name: "x"}))
			return err
		}, connect.CodeNotFound, "no site"},
		"no entry": {func() error {
			_, err := api.DenyBoost(t.Context(), connect.NewRequest(&apiv1.DenyBoostRequest{Name: "x"}))
			return err
		}, connect.CodeNotFound, "no entry"},
		"no agent": {func() error {
			_, err := api.DrainBoostAgent(t.Context(), connect.NewRequest(&apiv1.DrainBoostAgentRequest{Name: "x"}))
			return err
		}, connect.CodeNotFound, "no agent"},
		"two sites": {func() error {
			_, err := api.SetBoostSite(t.Context(), connect.NewRequest(&apiv1.BoostSite{Name: "south", Prefixes: []string{"10.0.0.0/8"}, Agents: []string{"e1"}}))
			return err
		}, connect.CodeFailedPrecondition, "an agent serves one site"},
		"taken": {func() error {
			_, err := api.SetBoostSite(t.Context(), connect.NewRequest(&apiv1.BoostSite{Name: "south", Prefixes: []string{"192.0.2.128/25"}}))
			return err
		}, connect.CodeInvalidArgument, "both have addresses"},
		"empty": {func() error {
			_, err := api.SetBoostSite(t.Context(), connect.NewRequest(&apiv1.BoostSite{Name: "south"}))
			return err
		}, connect.CodeInvalidArgument, "0 prefixes"},
	} {
		err := c.do()
		if connect.CodeOf(err) != c.code || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %v that says %q", what, err, c.code, c.says)
		}
	}
	if after := n.list().String(); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}

// Sessions are listed under their entry, the fastest first, by their near agent's word; they are forgotten with its stream,
// for the next one tells them all.
func TestSessionsAreListed(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1 := n.join("e1")
	n.join("w1")
	e, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	of := func(number uint64, rate uint64, client string) *apiv1.BoostSession {
		return &apiv1.BoostSession{Number: number, Far: "w1", Lane: e.Lanes[0].Number, Client: client, Server: "198.51.100.7:80", SendRate: rate, Near: "liar", Entry: "liar"}
	}
	report := func(m *apiv1.BoostSessions) {
		n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: m}})
	}
	ask := func(req *apiv1.ListBoostSessionsRequest) (numbers []uint64, total uint32) {
		t.Helper()
		all, err := n.API().ListBoostSessions(t.Context(), connect.NewRequest(req))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all.Msg.Sessions {
			if s.Near != "e1" || s.Entry != "files" {
				t.Errorf("session %v", s)
			}
			numbers = append(numbers, s.Number)
		}
		return numbers, all.Msg.Total
	}
	report(&apiv1.BoostSessions{Changed: []*apiv1.BoostSession{of(2, 1, "192.0.2.1:1"), of(4, 9, "192.0.2.1:2"), of(6, 5, "192.0.2.1:3"), of(8, 5, "no address")}})
	if got, total := ask(&apiv1.ListBoostSessionsRequest{Limit: 2}); !slices.Equal(got, []uint64{4, 6}) || total != 3 {
		t.Errorf("listed %v of %d", got, total)
	}
	report(&apiv1.BoostSessions{Changed: []*apiv1.BoostSession{of(2, 99, "192.0.2.1:1")}, Ended: []*apiv1.BoostSessionEnd{{Far: "w1", Number: 4}}})
	if got, _ := ask(&apiv1.ListBoostSessionsRequest{Entry: "files", Agent: "w1"}); !slices.Equal(got, []uint64{2, 6}) {
		t.Errorf("listed %v", got)
	}
	for _, req := range []*apiv1.ListBoostSessionsRequest{{Entry: "x"}, {Agent: "x"}} {
		if _, err := n.API().ListBoostSessions(t.Context(), connect.NewRequest(req)); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("%v: %v", req, err)
		}
	}
	n.Lost("e1", e1.Session, nil)
	if got, _ := ask(&apiv1.ListBoostSessionsRequest{}); len(got) != 0 {
		t.Errorf("without its agent: %v", got)
	}
}

// An agent may say anything of itself: it is bounded, and what is no number is none.
func TestAnAgentsWordIsBounded(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1 := n.join("e1")
	n.join("w1")
	load := &apiv1.BoostLoad{Load: math.NaN(), Trunks: []*apiv1.BoostTrunk{{Agent: "nobody"}, {Agent: strings.Repeat("x", 1<<20)}}}
	for range 2 * maxAgents {
		load.Trunks = append(load.Trunks, &apiv1.BoostTrunk{Agent: "w1", RttUs: 1})
	}
	n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: load}})
	if a := n.list().Agents[0]; a.Load != 0 || len(a.Trunks) != maxAgents || a.Trunks[0].Agent != "w1" {
		t.Errorf("load %v, %d trunks", a.Load, len(a.Trunks))
	}
	n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Load: 1e9}}})
	n.Report("e1", e1.Session, &apiv1.BoostReport{})
	if a := n.list().Agents[0]; a.Load != 1 {
		t.Errorf("load %v", a.Load)
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

// What an agent reports is of itself alone, by the stream that it has now.
func TestOnlyTheStreamOfNowCounts(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	old := n.join("e1")
	n.join("e1") // the same process comes back, before its former stream has ended
	n.Report("e1", old.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Sessions: 7}}})
	n.Lost("e1", old.Session, nil)
	if a := n.list().Agents[0]; a.Sessions != 0 || a.State != "here" {
		t.Errorf("agent: %v", a)
	}
}
