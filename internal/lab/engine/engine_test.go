package engine

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
)

// What runs is found where the file says, also from the file's own directory, and never in PATH.
func TestTheEngineIsFoundBesideTheLabFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own"), []byte("#!/bin/sh\necho own\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, path := range []string{"lab.yaml", "./lab.yaml", filepath.Join(dir, "lab.yaml"), filepath.Join("..", filepath.Base(dir), "lab.yaml")} {
		for _, engine := range []string{"own", "./own", filepath.Join(dir, "own")} {
			f := &file.File{Path: path}
			f.Network.Engine = engine
			e := New(Config{Plan: plan.Make(f), Binary: "/bin/false"})
			if out, err := exec.Command(e.binary()).Output(); string(out) != "own\n" {
				t.Errorf("engine %s of %s is %q: %v", engine, path, e.binary(), err)
			}
		}
	}
}

// A recorder is asked to start an engine and says how that ended.
type recorder struct {
	started *exec.Cmd
	end     error
}

func (r *recorder) SpawnOutside(_, _ string, cmd *exec.Cmd) error { r.started = cmd; return nil }
func (r *recorder) Exited(string, string) error                   { return r.end }

func of(t *testing.T, text string, procs Processes) *Engine {
	t.Helper()
	f, err := file.Parse("t.yaml", []byte("name: t\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Plan: plan.Make(f), Dir: state.Dir{Base: t.TempDir(), Lab: "t"}, Binary: "/bin/false", Processes: procs})
}

const mixed = "nodes: {h1: host, r1: emulated, r2: emulated, h2: host}\nlinks: [{ends: [h1, r1], delay: 2ms}, [r1, r2], [r2, h2]]\n"

func TestWithoutAnythingEmulatedNothingIsStarted(t *testing.T) {
	r := &recorder{}
	e := of(t, "nodes: {h1: host, r1: plain}\nlinks: [[h1, r1]]\n", r)
	if err := e.Start(t.Context()); err != nil || r.started != nil || e.Client() != nil {
		t.Errorf("started %v, %v", r.started, err)
	}
	if links, err := e.Links(); links != nil || err != nil {
		t.Errorf("links %v, %v", links, err)
	}
	if c := e.OfRun(t.Context()); c != nil {
		t.Errorf("certificate %+v", c)
	}
	if err := e.Change(t.Context()); err != nil {
		t.Errorf("no change: %v", err)
	}
}

func TestAnEngineThatEndsIsNotWaitedFor(t *testing.T) {
	r := &recorder{end: errors.New("mgmt/engine ended (exit status 1)")}
	e := of(t, mixed, r)
	if err := e.Start(t.Context()); !errors.Is(err, r.end) {
		t.Errorf("start: %v", err)
	}
	text, err := os.ReadFile(r.started.Args[3])
	var cfg emud.Config
	if err == nil {
		err = json.Unmarshal(text, &cfg)
	}
	if err != nil || len(cfg.Routers) != 2 || len(cfg.Links) != 3 {
		t.Errorf("%v was told of %d routers and %d links, %v", r.started.Args, len(cfg.Routers), len(cfg.Links), err)
	}
	if _, err := e.Links(); err == nil || !strings.Contains(err.Error(), e.path(".log")) {
		t.Errorf("the links of an engine that is gone: %v; it does not say where to look", err)
	}
	if c := e.OfRun(t.Context()); c == nil || c.Faithful || len(c.Reasons) != 1 {
		t.Errorf("the certificate of a run whose engine is gone: %+v", c)
	}
}

// A newer engine is started, and answers at its socket that it knows nothing of what is asked.
type newer struct{ t *testing.T }

func (s newer) SpawnOutside(_, _ string, cmd *exec.Cmd) error {
	l, err := net.Listen("unix", cmd.Args[4])
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	go server.Serve(l)                     // ends with the test
	s.t.Cleanup(func() { server.Close() }) // nobody is connected any more
	return nil
}

func (s newer) Exited(string, string) error { return nil }

// Whoever built an engine of his own from another version learns it at once, and not when a minute is over.
func TestAnEngineOfAnotherVersionIsNotWaitedFor(t *testing.T) {
	if err := of(t, mixed, newer{t}).Start(t.Context()); !errors.Is(err, emud.ErrVersion) || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestAnEndOfALinkIsARoutersPortOrAnInterface(t *testing.T) {
	e := of(t, mixed, nil)
	cfg := configOf(e.plan, e.dir)
	host, router, inside := cfg.Links[0].Ends[0], cfg.Links[0].Ends[1], cfg.Links[1].Ends[0]
	if host.Router || host.Edge == nil || !strings.HasSuffix(host.Edge.Netns, "-h1") {
		t.Errorf("the end at h1: %+v", host)
	}
	if !router.Router || router.Edge != nil || !inside.Router || inside.Edge != nil {
		t.Errorf("ends at routers: %+v, %+v", router, inside)
	}
	if got := cfg.Links[0].Params[0].String(); got != "delay 2ms" {
		t.Errorf("the first link: %s", got)
	}
}

func TestWhatTheEngineDoesNotHaveIsNotAskedOfIt(t *testing.T) {
	e := of(t, mixed, nil)
	var missing *emud.NotFoundError
	for _, router := range []string{"h1", "r9"} {
		if _, err := e.Get(t.Context(), router, "routes"); !errors.As(err, &missing) {
			t.Errorf("a handler of %s: %v", router, err)
		}
	}
	if _, err := e.Replay(t.Context(), "h1:h2", 1, nil); !errors.As(err, &missing) {
		t.Errorf("a recording for a link that is not there: %v", err)
	}
	if _, err := e.Replay(t.Context(), "r1", 1, nil); err == nil || !strings.Contains(err.Error(), "NODE:NEIGHBOUR") {
		t.Errorf("a port without a neighbour: %v", err)
	}
	for ends, want := range map[[2]string]int{{"r1", "h1"}: 0, {"r1", "r2"}: 1, {"h2", "r2"}: 2} {
		if got, err := e.numberBetween(ends[0], ends[1]); got != want || err != nil {
			t.Errorf("the link between %v is %d, %v; want %d", ends, got, err, want)
		}
	}
}
