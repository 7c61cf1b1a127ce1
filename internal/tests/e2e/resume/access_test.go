package resume

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// access says who may serve the service and who may connect.
func (s *service) access(a *apiv1.Access) {
	s.t.Helper()
	if _, err := shared.admin.UpdateAccess(s.t.Context(), connect.NewRequest(&apiv1.UpdateAccessRequest{Name: s.name, Access: a, Replace: true, AnyServer: len(a.GetServers()) == 0, AnyClient: len(a.GetAllow()) == 0})); err != nil {
		s.t.Fatal(err)
	}
}

// do carries out an action of the lab.
func (s *service) do(text string) {
	s.t.Helper()
	a, err := file.ParseAction(text)
	if err == nil {
		err = shared.lab.Do(s.t.Context(), a)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// counter is what the sessions of a host count.
func counter(t *testing.T, host, name string) uint64 {
	t.Helper()
	r, err := local(t, host).GetHostStatus(t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	return r.Msg.Counters["session_"+name]
}

// events are those of the kind since a time in milliseconds.
func events(t *testing.T, kind string, since int64) (all []*apiv1.Event) {
	t.Helper()
	stream, err := shared.admin.WatchEvents(t.Context(), connect.NewRequest(&apiv1.WatchEventsRequest{History: 10000}))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for stream.Receive() {
		if e := stream.Msg(); e.Kind == kind && e.UnixMs > since {
			all = append(all, e)
		}
	}
	return all
}

// lastEvent is when the last one was.
func lastEvent(t *testing.T) (at int64) {
	t.Helper()
	for _, kind := range []string{"flow.reset", "instance.up", "instance.down", "service.access"} {
		for _, e := range events(t, kind, 0) {
			at = max(at, e.UnixMs)
		}
	}
	return at
}

// told waits for an event of the kind, about the subject, whose text has the words.
func told(t *testing.T, since int64, kind, subject, words string) {
	t.Helper()
	nstest.Wait(t, "scaffold events", func() error {
		list := events(t, kind, since)
		for _, e := range list {
			if e.Subject == subject && strings.Contains(e.Text, words) {
				return nil
			}
		}
		return fmt.Errorf("no %s of %s that says %q among %v", kind, subject, words, list)
	})
}

// ended waits for the end of a client whose download cannot go on: that must be an error, of the connection.
func (s *service) ended(p *nstest.Proc) {
	s.t.Helper()
	if err := p.Wait(); err == nil || !strings.Contains(p.Output(), "reset by peer") {
		s.t.Errorf("the client ended with %v, want connection reset by peer:\n%s", err, p.Output())
	}
}

// fast is download, in a third of its time.
func (s *service) fast() (*nstest.Proc, string) {
	return s.client("curl", "-sS", "--fail", "--limit-rate", "30M", "-o", "GOT", "http://"+s.name+".svc/blob")
}

// The instance that is left has a program that could go on, and its host may not serve: the client is told at once, and
// nothing went on there. Once the host may, flows do.
func TestNoFlowGoesOnWhereNobodyMayServe(t *testing.T) {
	safety.Test(t, safety.Door)
	s := serve(t, "held", "httpd", "80", size, &apiv1.Policy{Failover: "continue"}, []string{"s1", "s2"})
	s.access(&apiv1.Access{Servers: []string{"s1"}})
	s.serving(1)
	since, offered := lastEvent(t), counter(t, "s2", "offered")
	p, got := s.download()
	s.arrived(p, got, size/16)
	s.busy()
	s.end("s1")
	s.ended(p)
	told(t, since, "flow.reset", "c1", "nobody who may serve it can go on with it")
	if now := counter(t, "s2", "offered"); now != offered {
		t.Errorf("s2, which may not serve, offered itself %d times", now-offered)
	}
	s.access(&apiv1.Access{Servers: []string{"s2", "s3"}})
	s.start("s3")
	s.serving(2)
	p, got = s.fast()
	s.arrived(p, got, size/16)
	s.lose(p, s.end)
	s.whole(p, got)
}

// A client loses its right while its server's host is cut off, and so does not hear of it: the other instance does not
// take the flow over, and the client is told why.
func TestNobodyTakesOverForAClientThatMayNotConnect(t *testing.T) {
	safety.Test(t, safety.Door)
	s := serve(t, "barred", "httpd", "80", size, &apiv1.Policy{Failover: "continue", PatienceMs: 700}, []string{"s1", "s2"})
	p, got := s.download()
	s.arrived(p, got, size/16)
	cut := s.busy()
	other := map[string]string{"s1": "s2", "s2": "s1"}[cut]
	since, declined := lastEvent(t), counter(t, other, "declined")
	s.do("cut " + cut + " r1")
	t.Cleanup(func() { s.do("heal " + cut + " r1") })
	s.access(&apiv1.Access{Allow: []string{"s3"}})
	s.ended(p)
	told(t, since, "flow.reset", "c1", "forbidden: the client may not connect")
	if now := counter(t, other, "declined"); now == declined {
		t.Errorf("%s was never asked: the test tries nothing", other)
	}
	s.gets("c1", "Permission denied")
	s.gets("s3", "")
	s.do("heal " + cut + " r1")
	s.access(&apiv1.Access{})
	s.serving(2)
	s.gets("c1", "")
}

// gets waits until a host's client gets the service, or is told why not.
func (s *service) gets(host, why string) {
	s.t.Helper()
	nstest.Wait(s.t, "the logs in "+shared.lab.Dir(), func() error {
		out, err := nstest.TryBy(at(host), exec.Command("curl", "-sSv", "-m", "5", "--range", "0-99", "-o", "/dev/null", "http://"+s.name+".svc/blob"))
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(out, why)) {
			return fmt.Errorf("curl at %s: %v %s, want %q", host, err, out, why)
		}
		return nil
	})
}
