package switches

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/openflow/ovs"
)

// A recorder runs nothing and notes what it was asked to run.
type recorder struct {
	running map[string]bool
	ran     []string
	broken  error // what tools answer
	end     error // of what was spawned
}

func (r *recorder) LookPath(program string) (string, error) {
	if program == "ovsdb-server" && r.running == nil {
		return "", fs.ErrNotExist
	}
	return "/bin/true", nil
}

func (r *recorder) Spawn(_ *plan.Node, name string, _ *exec.Cmd) error {
	r.running[name], r.ran = r.end == nil, append(r.ran, "spawn "+name)
	return nil
}

func (r *recorder) Output(_ *plan.Node, cmd *exec.Cmd) ([]byte, error) {
	r.ran = append(r.ran, strings.Join(cmd.Args[1:], " "))
	return []byte("what it said\n"), r.broken
}

func (r *recorder) Running(_, name string) bool { return r.running[name] }

func (r *recorder) State(_, name string) (string, []int) {
	if r.running[name] {
		return "running", nil
	}
	return "down", nil
}

func (r *recorder) Exited(string, string) error { return r.end }

// asked is whether a tool was run with these words, in this order.
func (r *recorder) asked(words ...string) bool {
	return slices.ContainsFunc(r.ran, func(line string) bool {
		for _, w := range words {
			_, rest, found := strings.Cut(line, w)
			if !found {
				return false
			}
			line = rest
		}
		return true
	})
}

func of(t *testing.T, r *recorder) (*Switches, *plan.Node) {
	t.Helper()
	f, err := file.Parse("t.yaml", []byte("name: t\nnodes: {ctl: controller, sw: {kind: switch, service: true}, r1: router}\nlinks: [[sw, r1]]\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Make(f)
	return New(p, state.Dir{Base: t.TempDir(), Lab: "t"}, r, t.Logf), p.Node("sw")
}

func TestWithoutOpenVSwitchTheSwitchIsNamed(t *testing.T) {
	s, _ := of(t, &recorder{})
	var missing *ovs.MissingError
	if err := s.Check(); !errors.As(err, &missing) || !strings.Contains(err.Error(), "sw is a switch") {
		t.Errorf("%v", err)
	}
}

func TestADaemonIsConfiguredBeforeItStarts(t *testing.T) {
	r := &recorder{running: map[string]bool{file.OVSDB: true}}
	s, sw := of(t, r)
	if err := s.Start(t.Context(), sw); err != nil {
		t.Fatal(err)
	}
	if len(r.ran) != 3 || r.ran[1] != "spawn "+file.Vswitchd || !r.asked(Bridge, "to-r1") || !r.asked(s.plan.OpenFlowTargets()[0]) {
		t.Errorf("it was asked for\n%s", strings.Join(r.ran, "\n"))
	}
	r.ran = nil
	if err := s.Start(t.Context(), sw); err != nil || r.ran != nil {
		t.Errorf("a switch that runs was asked for %q, %v", r.ran, err)
	}
}

func TestADaemonThatEndedIsTold(t *testing.T) {
	r := &recorder{running: map[string]bool{file.OVSDB: true}, end: errors.New("sw/vswitchd ended")}
	s, sw := of(t, r)
	if err := s.Start(t.Context(), sw); !errors.Is(err, r.end) {
		t.Errorf("%v", err)
	}
	r.broken = errors.New("exit status 1")
	if err := s.Start(t.Context(), sw); !errors.Is(err, r.broken) || !strings.Contains(err.Error(), "what it said") {
		t.Errorf("a tool that failed: %v", err)
	}
}

func TestAPortThatIsGoneIsToldToWhoRuns(t *testing.T) {
	r := &recorder{running: map[string]bool{}}
	s, sw := of(t, r)
	repatch := func(verb string) {
		t.Helper()
		r.ran = nil
		if err := s.Repatch(sw, sw.Ports[0], verb); err != nil {
			t.Error(err)
		}
	}
	if repatch("remove"); r.ran != nil {
		t.Errorf("without a database: %q", r.ran)
	}
	r.running[file.OVSDB] = true
	if repatch("remove"); !r.asked("--no-wait", "del-port", Bridge, "to-r1") {
		t.Errorf("a daemon that does not run is waited for: %q", r.ran)
	}
	r.running[file.Vswitchd] = true
	if repatch("remove"); !r.asked("del-port") || r.asked("--no-wait") {
		t.Errorf("a daemon that runs is not waited for: %q", r.ran)
	}
	if repatch("heal"); len(r.ran) != 2 || !r.asked("to-r1") {
		t.Errorf("after heal: %q", r.ran)
	}
	if repatch("cut"); r.ran != nil { // it stays where it is
		t.Errorf("after cut: %q", r.ran)
	}
	r1 := s.plan.Node("r1")
	if err := s.Repatch(r1, r1.Ports[0], "remove"); err != nil || r.ran != nil {
		t.Errorf("of a router: %q, %v", r.ran, err)
	}
}

func TestToolsInANodeFindItsDaemons(t *testing.T) {
	s, sw := of(t, &recorder{})
	want := "OVS_RUNDIR=" + filepath.Join(s.dir.Node("sw"), "ovs")
	if env := Environ(s.dir, sw); !slices.Contains(env, want) {
		t.Errorf("%q has no %s", env, want)
	}
}
