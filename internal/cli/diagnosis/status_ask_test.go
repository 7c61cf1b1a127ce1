package diagnosis

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/remote/remotetest"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/health"

	judged "scaffold.dev/scaffold/internal/operate/verdict"
	"scaffold.dev/scaffold/internal/tests/freeport"
)

// judging is a daemon that says of the network, and of itself, what it is told to.
type judging struct {
	apiv1connect.UnimplementedAdminHandler
	apiv1connect.UnimplementedLocalHandler
	network, own *apiv1.Health // nil: it does not answer that until the question ends
}

func (j *judging) tell(ctx context.Context, h *apiv1.Health) (*connect.Response[apiv1.Health], error) {
	if h == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return connect.NewResponse(h), nil
}

func (j *judging) GetHealth(ctx context.Context, _ *connect.Request[apiv1.GetHealthRequest]) (*connect.Response[apiv1.Health], error) {
	return j.tell(ctx, j.network)
}

func (j *judging) GetOwnHealth(ctx context.Context, _ *connect.Request[apiv1.GetHealthRequest]) (*connect.Response[apiv1.Health], error) {
	return j.tell(ctx, j.own)
}

// machineWith is a machine on which these daemons run, by the names of their sockets.
func machineWith(t *testing.T, all map[string]*judging) *remote.Remote {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli") // a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, j := range all {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle(apiv1connect.NewAdminHandler(j))
		mux.Handle(apiv1connect.NewLocalHandler(j))
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- api.Serve(ctx, mux, l) }()
		t.Cleanup(func() { stop(); <-served })
	}
	return &remote.Remote{Run: dir, Getenv: func(string) string { return "" }, Alive: remote.Accepts, Mine: remote.Writable, Login: func() string { return "" }}
}

func problem(kind health.Kind, severity health.Severity, what string) *apiv1.Problem {
	return &apiv1.Problem{Kind: string(kind), Severity: severity.String(), What: what, Where: what, Count: 1}
}

func TestStatusIsWhatAllOfThisMachineSay(t *testing.T) {
	t.Parallel()
	well := &apiv1.Health{Status: &apiv1.Status{Network: "n"}}
	open := &apiv1.Health{Status: &apiv1.Status{Network: "n", Trust: "open"}, Problems: []*apiv1.Problem{problem(health.NetworkOpen, health.Warning, "reached at [::]:1")}}
	hears := &apiv1.Health{Problems: []*apiv1.Problem{problem(health.NetworkOpen, health.Warning, "joined without a key")}}
	alone := &apiv1.Health{Problems: []*apiv1.Problem{problem(health.NotJoined, health.Critical, "router r1 is alone")}}
	for name, c := range map[string]struct {
		daemons map[string]*judging
		verdict string
		what    []string // of the problems, in order
		note    string
	}{
		"all is well": {map[string]*judging{"controld.sock": {network: well}, "hostd.sock": {own: well}}, "ok", nil, ""},
		"a router's machine, where no controller can be asked": {map[string]*judging{"routerd.sock": {own: &apiv1.Health{}}}, "ok", nil, "only routerd of this machine"},
		"its router is alone":              {map[string]*judging{"routerd.sock": {own: alone}}, "critical", []string{"router r1 is alone"}, ""},
		"its router is in an open network": {map[string]*judging{"routerd.sock": {own: hears}}, "warning", []string{"joined without a key"}, ""},
		"an open network is told once":     {map[string]*judging{"controld.sock": {network: open}, "routerd.sock": {own: hears}}, "warning", []string{"reached at [::]:1"}, ""},
	} {
		f, err := askFindings(t.Context(), machineWith(t, c.daemons))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := f.merged()
		var what []string
		for _, p := range s.Problems {
			what = append(what, p.What)
		}
		if s.Verdict != c.verdict || strings.Join(what, ";") != strings.Join(c.what, ";") || !strings.Contains(strings.Join(f.notes, ";"), c.note) {
			t.Errorf("%s: %s %q %q, want %s %q %q", name, s.Verdict, what, f.notes, c.verdict, c.what, c.note)
		}
	}
}

// A controller that takes the question and says nothing does not hold up what a daemon of this machine knows, and where
// there is none it is said who does not answer.
func TestStatusDoesNotWaitForADeadController(t *testing.T) {
	t.Parallel()
	r := machineWith(t, map[string]*judging{"controld.sock": {}, "hostd.sock": {own: &apiv1.Health{}}})
	r.Patience = 50 * time.Millisecond
	f, err := askFindings(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if s := f.merged(); s.Verdict != "critical" || len(s.Problems) != 1 || !strings.Contains(s.Problems[0].What, "no controller answers: ") || !strings.Contains(s.Problems[0].What, "has not answered in time") {
		t.Errorf("%+v; want one critical problem: that nobody answers", s)
	}
	r = machineWith(t, map[string]*judging{"controld.sock": {}})
	r.Patience = 50 * time.Millisecond
	_, err = askFindings(t.Context(), r)
	if known, ok := errors.AsType[*exit.Error](err); !ok || known.Code != exit.Unreachable || !strings.Contains(err.Error(), "has not answered in time") {
		t.Errorf("%v, want code %d and that it has not answered in time", err, exit.Unreachable)
	}
}

// A host's daemon that was named is asked of itself, too: where no controller answers, it knows why.
func TestStatusOfANamedHostIsWhatItKnows(t *testing.T) {
	t.Parallel()
	r := machineWith(t, map[string]*judging{"hostd.sock": {own: &apiv1.Health{Problems: []*apiv1.Problem{problem(health.NotJoined, health.Critical, "host s1 is alone")}}}})
	r.Patience, r.API = 50*time.Millisecond, "unix:"+filepath.Join(r.Run, "hostd.sock")
	f, err := askFindings(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if s := f.merged(); len(s.Problems) != 1 || s.Problems[0].What != "host s1 is alone" || len(f.asked) != 1 {
		t.Errorf("%+v of %v", s, f.asked)
	}
	r = machineWith(t, map[string]*judging{"hostd.sock": {own: &apiv1.Health{}}}) // which has a controller that does not answer
	r.Patience, r.API = 50*time.Millisecond, "unix:"+filepath.Join(r.Run, "hostd.sock")
	if f, err = askFindings(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	want := "no controller answers: the daemon at " + r.API + " asks one for us, and it has not answered in time"
	if s := f.merged(); len(s.Problems) != 1 || s.Problems[0].What != want || s.Problems[0].Next != "scaffold controller ls --api "+r.API {
		t.Errorf("%+v, want %q", s, want)
	}
}

// A lab whose controller has died is there all the same.
func TestALabWithoutItsControllerIsNoMissingLab(t *testing.T) {
	r := remotetest.Machine(t, "lab/dead/ctl/controld.sock", "lab/dead/s1/hostd.sock")
	r.Lab = "dead"
	_, err := askFindings(t.Context(), r)
	if known, ok := errors.AsType[*exit.Error](err); !ok || known.Code != exit.Unreachable || err.Error() != "lab dead is there, and no controller of it answers" || !strings.Contains(known.Hint, "scaffold lab start") {
		t.Errorf("%v", err)
	}
}

// Whoever presses Ctrl-C waits for nobody, however the question is stuck.
func TestStatusEndsWhenItIsAskedTo(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	defer close(stuck)
	r := machineWith(t, map[string]*judging{"controld.sock": {}, "hostd.sock": {}})
	r.Login = func() string { return "" }
	choosing := make(chan struct{}, 1)
	r.Mine = func(string) bool { // as a name server that does not answer
		choosing <- struct{}{}
		<-stuck
		return false
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-choosing; cancel() }()
	if _, err := askFindings(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// What stands between this machine and a daemon is said in plain words.
func TestWhyNobodyAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for endpoint, want := range map[string]string{
		"unix:" + filepath.Join(dir, "x"): "nothing listens there",
		"http://" + freeport.Address(t):   "nothing listens there",
	} {
		r := &remote.Remote{API: endpoint, Run: dir, Getenv: func(string) string { return "" }, Alive: remote.Accepts, Mine: remote.Writable, Login: func() string { return "" }}
		_, err := askFindings(t.Context(), r)
		if want = "no answer from " + endpoint + ": " + want; err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Doctor names an open network, and controllers that speak in clear, also where a router alone is asked.
func TestDoctorSaysWhoGetsIn(t *testing.T) {
	t.Parallel()
	told := health.Judge(health.Snapshot{Now: time.Now(), Open: []string{"[::]:23728"}, Clear: health.Clear{Peers: []string{"http://192.0.2.1:23729"}}})
	open := &apiv1.Health{Status: &apiv1.Status{Trust: "open"}, Problems: judged.ToAPI(told)}
	hears := &apiv1.Health{Problems: judged.ToAPI(health.Judge(health.Snapshot{Now: time.Now(), Own: &health.Own{Role: "router", Name: "r1", Joined: true, Open: true}}))}
	for name, c := range map[string]struct {
		daemons map[string]*judging
		known   bool
		found   string
	}{
		"nobody":                    {nil, false, ""},
		"a network with keys":       {map[string]*judging{"controld.sock": {network: &apiv1.Health{Status: &apiv1.Status{Trust: "keys"}}}}, true, ""},
		"a controller of an open":   {map[string]*judging{"controld.sock": {network: open}, "routerd.sock": {own: hears}}, true, "the network is open; the controllers exchange the state in clear"},
		"a host of an open":         {map[string]*judging{"hostd.sock": {network: open, own: hears}}, true, "the network is open; the controllers exchange the state in clear"},
		"a router alone of an open": {map[string]*judging{"routerd.sock": {own: hears}}, true, "the network is open"},
	} {
		n, known := admission(t.Context(), machineWith(t, c.daemons))
		var found []string
		for _, h := range n.Exposed {
			found = append(found, h.Found)
			if h.Cost == "" || h.Do == "" {
				t.Errorf("%s: %+v does not say what it costs, or what to do", name, h)
			}
		}
		if known != c.known || strings.Join(found, "; ") != c.found {
			t.Errorf("%s: %v %q, want %v %q", name, known, found, c.known, c.found)
		}
	}
}
