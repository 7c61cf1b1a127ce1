package boost

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

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

// What binds a session is told by both its agents, each of which knows its own end.
func TestWhatBindsASessionIsListed(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1, w1 := n.join("e1"), n.join("w1")
	if _, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"}); err != nil {
		t.Fatal(err)
	}
	waits := func(reads, writes string) *apiv1.BoostWaits { return &apiv1.BoostWaits{Reads: reads, Writes: writes} }
	near := func(w *apiv1.BoostWaits) {
		n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: &apiv1.BoostSessions{Changed: []*apiv1.BoostSession{
			{Number: 2, Far: "w1", Client: "192.0.2.1:1", Server: "[2001:db8::7]:80", NearWaits: w}}}}})
	}
	far := func(w *apiv1.BoostWaits) {
		n.Report("w1", w1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: &apiv1.BoostSessions{Waits: []*apiv1.BoostSessionWaits{
			{Near: "e1", Number: 2, Waits: w}, {Near: "e1", Number: 4, Waits: w}, {Near: "nobody", Number: 2, Waits: w}}}}})
	}
	listed := func(req *apiv1.ListBoostSessionsRequest) (all []*apiv1.BoostSession) {
		t.Helper()
		answer, err := n.API().ListBoostSessions(t.Context(), connect.NewRequest(req))
		if err != nil {
			t.Fatal(err)
		}
		return answer.Msg.Sessions
	}
	is := func(sent, received string) {
		t.Helper()
		all := listed(&apiv1.ListBoostSessionsRequest{Client: "192.0.2.1", Server: "[2001:db8::7]:80"})
		if len(all) != 1 || all[0].SentBound != sent || all[0].ReceivedBound != received {
			t.Errorf("%v; expected %q and %q", all, sent, received)
		}
	}
	near(waits("path", "free"))
	is("path", "")
	far(waits("host", "host")) // before or after, it counts
	is("path", "source")
	near(waits("credit", "free"))
	is("receiver", "source")
	far(waits("memory", "memory"))
	is("far agent's memory", "far agent's memory")
	n.Report("w1", w1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Load: 0.97}}})
	is("far agent", "far agent's memory")
	near(waits("anything", "else"))
	is("", "far agent's memory")
	if f := n.Figures(); f.Bound["unclear"] != 1 || f.Bound["far agent's memory"] != 1 || len(f.Agents) != 2 {
		t.Errorf("figures: %v", f)
	}
	far(nil)
	is("", "")
	if got := listed(&apiv1.ListBoostSessionsRequest{Client: "192.0.2.1:2"}); len(got) != 0 {
		t.Errorf("of another port: %v", got)
	}
	if _, err := n.API().ListBoostSessions(t.Context(), connect.NewRequest(&apiv1.ListBoostSessionsRequest{Client: "host"})); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a client that is no address: %v", err)
	}
}

// Where the path binds, the agent that sends says what of it does; what it says that is not known here is left out, and so is
// what it says where something else binds.
func TestWhatOfThePathBindsIsListed(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1, w1 := n.join("e1"), n.join("w1")
	tell := func(name string, s *Session, p *apiv1.BoostPath, other string) {
		n.Report(name, s, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Trunks: []*apiv1.BoostTrunk{{Agent: other, Up: true, Path: p}}}}})
	}
	carry := func(near, far string) {
		n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: &apiv1.BoostSessions{Changed: []*apiv1.BoostSession{
			{Number: 2, Far: "w1", Client: "192.0.2.1:1", Server: "198.51.100.7:80", NearWaits: &apiv1.BoostWaits{Reads: near, Writes: "free"}}}}}})
		n.Report("w1", w1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: &apiv1.BoostSessions{Waits: []*apiv1.BoostSessionWaits{
			{Near: "e1", Number: 2, Waits: &apiv1.BoostWaits{Reads: far, Writes: "free"}}}}}})
	}
	is := func(sent, received string) *apiv1.BoostSession {
		t.Helper()
		answer, err := n.API().ListBoostSessions(t.Context(), connect.NewRequest(&apiv1.ListBoostSessionsRequest{}))
		if err != nil || len(answer.Msg.Sessions) != 1 {
			t.Fatalf("%v: %v", answer, err)
		}
		s := answer.Msg.Sessions[0]
		if s.SentPath.GetBound() != sent || s.ReceivedPath.GetBound() != received {
			t.Errorf("%v; expected %q and %q", s, sent, received)
		}
		return s
	}
	carry("path", "path")
	is("", "")
	tell("e1", e1.Session, &apiv1.BoostPath{Bound: "loss", Rate: 7, Loss: 0.001, Held: math.NaN()}, "w1")
	tell("w1", w1.Session, &apiv1.BoostPath{Bound: "send buffer", Held: 17}, "e1")
	if s := is("loss", "send buffer"); s.SentBound != "path" || s.SentPath.Rate != 7 || s.SentPath.Loss != 0.001 || s.SentPath.Held != 0 || s.ReceivedPath.Held != 1 {
		t.Errorf("%v", s)
	}
	carry("path", "host")
	is("loss", "")
	tell("e1", e1.Session, &apiv1.BoostPath{Bound: "what a later version knows"}, "w1")
	is("", "")
	tell("e1", e1.Session, &apiv1.BoostPath{Bound: "full"}, "w1")
	is("full", "")
	tell("e1", e1.Session, nil, "w1")
	is("", "")
}

// A scrape counts sessions where they are: it costs the same memory for ten of them as for thousands.
func TestFiguresBuildNoSessions(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1 := n.join("e1")
	n.join("w1")
	fill := func(from, to int) {
		m := &apiv1.BoostSessions{}
		for i := from; i < to; i++ {
			m.Changed = append(m.Changed, &apiv1.BoostSession{Number: uint64(i), Far: "w1", Client: fmt.Sprintf("192.0.2.1:%d", i+1), Server: "198.51.100.7:80",
				NearWaits: &apiv1.BoostWaits{Reads: "host", Writes: "free"}})
		}
		n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: m}})
	}
	cost := func() float64 { return testing.AllocsPerRun(10, func() { n.Figures() }) }
	fill(0, 10)
	few := cost()
	fill(10, 5000)
	if many := cost(); many > few {
		t.Errorf("figures of 5000 sessions take memory %v times, those of 10 %v times", many, few)
	}
	if f := n.Figures(); f.Bound["source"] != 5000 || f.Bound["unclear"] != 5000 {
		t.Errorf("bound: %v", f.Bound)
	}
}

// The far agent says where it has its end of a session, and by that the session is found.
func TestASessionIsFoundByItsFarEnd(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1, w1 := n.join("e1"), n.join("w1")
	e, err := n.allow(&apiv1.BoostEntry{Name: "files", Client: "192.0.2.0/24", Server: "198.51.100.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	lane := e.Lanes[0].Number
	n.Report("e1", e1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: &apiv1.BoostSessions{Changed: []*apiv1.BoostSession{
		{Number: 2, Far: "w1", Lane: lane, Client: "192.0.2.1:1", Server: "198.51.100.7:80"}, {Number: 4, Far: "w1", Lane: lane, Client: "192.0.2.1:2", Server: "198.51.100.7:80"},
	}}}})
	n.Report("w1", w1.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Sessions{Sessions: &apiv1.BoostSessions{Waits: []*apiv1.BoostSessionWaits{
		{Near: "e1", Number: 2, Waits: &apiv1.BoostWaits{}, At: "203.0.113.3:5000"}, {Near: "e1", Number: 4, Waits: &apiv1.BoostWaits{}, At: "no address"},
	}}}})
	for at, want := range map[string]uint64{"203.0.113.3:5000": 2, "203.0.113.3": 2, "203.0.113.3:5001": 0} {
		all, err := n.API().ListBoostSessions(t.Context(), connect.NewRequest(&apiv1.ListBoostSessionsRequest{FarAt: at}))
		if err != nil {
			t.Fatal(err)
		}
		if got := all.Msg.Sessions; want == 0 && len(got) != 0 || want != 0 && (len(got) != 1 || got[0].Number != want || got[0].FarAt != "203.0.113.3:5000") {
			t.Errorf("%s: %v", at, got)
		}
	}
	if _, err := n.API().ListBoostSessions(t.Context(), connect.NewRequest(&apiv1.ListBoostSessionsRequest{FarAt: "x"})); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("%v", err)
	}
}
