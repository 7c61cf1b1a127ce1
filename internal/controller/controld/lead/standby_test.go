package lead

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/store"
)

// TestADaemonThatAsksOneThatStandsByIsToldWhoLeads: and where the others are, should that one be gone.
func TestADaemonThatAsksOneThatStandsByIsToldWhoLeads(t *testing.T) {
	c := process(newElections(), nil)
	c.Peers.Set([]store.Candidate{{Name: "c2", API: []string{"b:1"}}, {Name: "c1", API: []string{"a:1"}}}, nil)
	r := c.elsewhere()
	if !r.Retry || !r.Standby || !slices.Equal(r.Leader, []string{"b:1"}) || !slices.Equal(r.Controllers.GetEndpoints(), []string{"b:1", "a:1"}) {
		t.Errorf("told %v", r)
	}
	c.Peers.Set(nil, errors.New("no quorum"))
	if r = c.elsewhere(); len(r.Leader) > 0 || !strings.Contains(r.Reason, "no quorum") || len(r.Controllers.GetEndpoints()) != 2 {
		t.Errorf("where nobody can say who leads it is told %v", r)
	}
}

// TestACallThatFindsNoLeaderWaitsForOne: who may be this controller; and no longer than a leader takes to be elected.
func TestACallThatFindsNoLeaderWaitsForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, term := newElections(), newTerm()
		c := process(e, term)
		end := leading(t, c)
		asked := make(chan string, 1)
		call := func() {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, apiv1connect.AdminGetServiceProcedure, strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/json")
			c.ServeHTTP(w, r)
			asked <- w.Body.String()
		}
		call()
		if got := <-asked; !strings.Contains(got, "no controller leads") {
			t.Errorf("while nobody leads: %s", got)
		}
		go call()
		synctest.Wait()
		e.wins <- newLeadership()
		if got := <-asked; got != "the term's answer" {
			t.Errorf("this controller leads, and answers %s", got)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestOneThatIsAloneAnswersNobodyBeforeItLeads: there would be nobody to hand a call on to.
func TestOneThatIsAloneAnswersNobodyBeforeItLeads(t *testing.T) {
	e, term := newElections(), newTerm()
	e.alone = true
	c := process(e, term)
	l, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, []net.Listener{l}) }() // ends with cancel
	terms := make(chan int64, 1)
	go func() { // ends with the answer
		r, err := http.Get("http://" + l.Addr().String() + "/")
		if err != nil {
			t.Error(err)
			terms <- 0
			return
		}
		r.Body.Close()
		terms <- c.cfg.Terms.(*figure).value.Load()
	}()
	e.wins <- newLeadership()
	if n := <-terms; n != 1 {
		t.Errorf("answered after %d terms began, want 1", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWhatIsWrongIsJudgedByTheTermWhileThereIsOne: by this controller alone where it stands by.
func TestWhatIsWrongIsJudgedByTheTermWhileThereIsOne(t *testing.T) {
	c := process(newElections(), nil)
	c.Peers.Set([]store.Candidate{{Name: "c1"}}, nil)
	if s := c.facts(t.Context()); s.Restored != "" || s.Cluster.Leader != "c1" {
		t.Errorf("standing by it knows %+v", s)
	}
	c.term.Store(&term{Term: newTerm(), ctx: t.Context()})
	s := c.facts(t.Context())
	if s.Restored != "by the term" {
		t.Errorf("leading it knows %+v", s)
	}
	away := 0
	for _, x := range s.Cluster.Controllers {
		if x.Name == "c9" && x.Away {
			away++
		}
	}
	if away != 1 {
		t.Errorf("c9, which the network remembers and nobody reaches, is away %d times in %+v", away, s.Cluster.Controllers)
	}
}

// TestTheListSaysWhoLeads: one that is alone does; where nobody does, who answers stands by.
func TestTheListSaysWhoLeads(t *testing.T) {
	e := newElections()
	e.alone = true
	c := process(e, nil)
	answer, err := (&standbyAdmin{c: c}).ListControllers(t.Context(), connect.NewRequest(new(apiv1.ListControllersRequest)))
	if err != nil || len(answer.Msg.Controllers) != 1 || answer.Msg.Controllers[0].State != "leads" || answer.Msg.Store != "in this controller" {
		t.Errorf("one that is alone: %v, %v", answer, err)
	}
	c = process(newElections(), nil)
	c.Peers.Set(nil, errors.New("no quorum"))
	if list := c.List(t.Context(), map[string]store.Controller{"c1": {Name: "c1"}, "c2": {Name: "c2"}}); list.Controllers[0].State != "stands by" || list.Controllers[1].State != "gone" || list.Trouble == "" {
		t.Errorf("where nobody can say who leads: %v", list)
	}
}

// TestOneThatStandsByAnswersForEachService: an agent's stream it refuses with the leader's place, as those of hosts and
// routers; all else it hands on. A service that it did not know would work with the leader alone.
func TestOneThatStandsByAnswersForEachService(t *testing.T) {
	c := process(newElections(), nil)
	handler := c.standbyHandler()
	for _, service := range []string{apiv1connect.AdminName, apiv1connect.TrustName, apiv1connect.AgentName, apiv1connect.BoostName, apiv1connect.BoostStreamName} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody leads: it would wait for somebody
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/"+service+"/Something", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); !strings.Contains(w.Body.String(), "no controller leads") {
			t.Errorf("%s: %d %s", service, w.Code, w.Body)
		}
	}
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	stream := apiv1connect.NewBoostStreamClient(server.Client(), server.URL).Agent(t.Context())
	if err := stream.Send(&apiv1.BoostReport{Report: &apiv1.BoostReport_Join{Join: &apiv1.BoostJoin{Name: "e1"}}}); err != nil {
		t.Fatal(err)
	}
	if o, err := stream.Receive(); err != nil || !o.GetRefused().GetStandby() {
		t.Errorf("an agent is told %v, %v", o, err)
	}
}
