package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/rogpeppe/go-internal/testscript"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/tests/freeport"
	"scaffold.dev/scaffold/internal/trust"
)

// TestWhoJoinsAndLeavesIsToldWhy runs the command line as a process against controllers of two networks with keys,
// over TLS, one that is open, and an address where nobody is.
func TestWhoJoinsAndLeavesIsToldWhy(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/members",
		Setup: serveNetworks,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"until": until,
			"fill":  fill,
			"idof":  idof,
		},
	})
}

func serveNetworks(env *testscript.Env) error {
	dir, err := os.MkdirTemp("", "cli") // a Unix socket's path has 107 characters
	if err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(dir) })
	for _, n := range []struct{ network, variable, trust string }{
		{"one", "ONE", config.TrustKeys}, {"two", "TWO", config.TrustKeys}, {"open", "OPEN", config.TrustOpen},
	} {
		address, err := keepsAddress(env)
		if err != nil {
			return err
		}
		cfg := config.Config{Network: n.network, Trust: n.trust, Data: filepath.Join(dir, n.network),
			Socket: filepath.Join(dir, n.network+".sock"), Listen: []string{"http://" + address}}
		if n.network == "one" { // it can grow
			peer, err := keepsAddress(env)
			if err != nil {
				return err
			}
			cfg.Name, cfg.Cluster = "c1", &store.Cluster{Name: "c1", Members: []store.Peer{{Name: "c1", URL: "http://" + peer}}}
		}
		if err := serveNetwork(env, cfg); err != nil {
			return err
		}
		env.Setenv(n.variable, address)
		env.Setenv(n.variable+"_API", "unix:"+cfg.Socket)
	}
	for _, variable := range []string{"DEAD", "PEER", "C2"} {
		free, err := keepsAddress(env)
		if err != nil {
			return err
		}
		env.Setenv(variable, free)
	}
	env.Setenv("SHORT", dir)
	env.Setenv(remote.APIVariable, env.Getenv("ONE_API"))
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
	env.Setenv("USER", "op")
	env.Setenv("PATH", filepath.SplitList(env.Getenv("PATH"))[0]) // scaffold alone: no systemctl starts this machine's daemons
	return nil
}

// keepsAddress gives an address where nobody listens, and which is the script's until it ends.
func keepsAddress(env *testscript.Env) (string, error) {
	at, release, err := freeport.Reserve(netip.MustParseAddr("127.0.0.1"))
	if err == nil {
		env.Defer(release)
	}
	return at, err
}

// serveNetwork runs a controller until the script ends, and returns when it listens.
func serveNetwork(env *testscript.Env, cfg config.Config) error {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- controld.Run(ctx, cfg, slog.New(slog.DiscardHandler)) }() // ends in Defer
	env.Defer(func() {
		stop()
		<-ended
	})
	for {
		if remote.Accepts(cfg.Socket) { // what is asked waits there for the answer
			return nil
		}
		select {
		case err := <-ended:
			ended <- err
			return errors.Join(errors.New("the controller of "+cfg.Network+" ended"), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// until TEXT PROGRAM ARGS... runs the program again and again, until its output has the text.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until TEXT PROGRAM ARGS...")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
	}
	ts.Fatalf("no %q in a minute", args[0])
}

// fill VARIABLE FILE puts what is in the file, a line, into the variable.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fill VARIABLE FILE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// idof ROLE FILE puts the id of the token that the list has for the role first into $ID.
func idof(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: idof ROLE FILE")
	}
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == args[0] {
			ts.Setenv("ID", f[0])
			return
		}
	}
	ts.Fatalf("no token for a %s", args[0])
}

// skewed is a controller whose clock is an hour behind.
type skewed struct {
	apiv1connect.UnimplementedTrustHandler
}

func (skewed) Meet(context.Context, *connect.Request[apiv1.MeetRequest]) (*connect.Response[apiv1.MeetResponse], error) {
	return connect.NewResponse(&apiv1.MeetResponse{Network: "one", Trust: "keys", NowUnixMs: time.Now().Add(-time.Hour).UnixMilli()}), nil
}

func TestJoinNamesBothClocksWhereTheyAreApart(t *testing.T) {
	authority, err := trust.NewAuthority(make([]byte, 32), "one")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewTrustHandler(skewed{}))
	server.Config.Handler, server.EnableHTTP2 = mux, true
	server.TLS = trust.NewServer(authority, "c1").Config()
	server.StartTLS()
	t.Cleanup(server.Close)
	token := trust.NewToken(trust.Router, trust.PinOf(authority.Public()))
	var out, problem bytes.Buffer
	dir := t.TempDir()
	code := Main([]string{"join", "--token", token.String(), "--name", "r1", "--state", filepath.Join(dir, "r1"), "--config", filepath.Join(dir, "r1.yaml"), server.Listener.Addr().String()}, nil, &out, &problem)
	const clock = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`
	want := regexp.MustCompile(`(?s)^scaffold: the clocks are 1h0m0s apart: this machine's says ` + clock + `, the controller's ` + clock + "\nhint: set the clock")
	if code != int(exit.Refused) || !want.MatchString(problem.String()) {
		t.Errorf("exit code %d, %s%s; want %d and both clocks", code, &out, &problem, exit.Refused)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("a join that was refused left %v", left)
	}
}
