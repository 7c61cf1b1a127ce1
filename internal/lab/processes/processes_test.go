package processes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/lab/wires"
	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestMain gives these tests a /run of their own.
func TestMain(m *testing.M) { nstest.Main(m) }

const host = `
name: p%d
nodes:
  r: plain
  h:
    kind: host
    programs:
      - {name: bad, run: "false", start: manual}
      - {name: short, run: "true", start: manual}
      - {name: long, run: "true", start: manual}
links: [[h, r]]
`

// prepared are the namespaces of a host beside an IP router, and nothing that runs in them.
func prepared(t *testing.T) (*Processes, *plan.Node) {
	t.Helper()
	nstest.Root(t)
	f, err := file.Parse("t.yaml", fmt.Appendf(nil, host, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	root, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{
		Plan: plan.Make(f), Dir: state.Dir{Base: t.TempDir(), Lab: f.Name}, Binary: "/bin/echo", // stands for it
		Root:    cgroups.Group(filepath.Join(root, "scaffold-lab-"+f.Name)),
		Besides: func(n *plan.Node) []string { return []string{"ROOM=" + n.Name} },
	})
	t.Cleanup(func() {
		if err := p.Root.Remove(context.Background()); err != nil {
			t.Error(err)
		}
		for _, n := range p.Plan.Spaces() {
			if err := wires.RemoveNamespace(n.Netns); err != nil {
				t.Error(err)
			}
		}
	})
	if err := os.MkdirAll(p.Dir.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := wires.Build(t.Context(), p.Plan, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return p, p.Plan.Node("h")
}

func TestACommandSeesItsNodeAlone(t *testing.T) {
	p, h := prepared(t)
	cmd, err := p.Command(t.Context(), "sh", "-c", "hostname; cat /etc/hosts; echo $ROOM $SCAFFOLD_NODE; ip -br link")
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Output(h, cmd)
	for _, want := range []string{"h\n", " r\n", "h h\n", "to-r"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in what the node sees: %v\n%s", want, err, out)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), p.hostsPath()) {
		t.Errorf("the node's /etc/hosts is seen outside: %v", err)
	}
}

func TestNodesHaveTheLabsOwnCommand(t *testing.T) {
	p := New(Config{Plan: plan.Make(&file.File{}), Binary: "/opt/x/scaffold-new"})
	if path, err := p.LookPath(product); err != nil || path != p.Binary {
		t.Errorf("scaffold is %s, %v", path, err)
	}
	if strings.Contains(p.path(), "/opt/x") {
		t.Errorf("a binary of another name is in PATH: %s", p.path())
	}
	p.Binary = "/opt/x/scaffold"
	if !strings.HasPrefix(p.path(), "/opt/x:") {
		t.Errorf("the lab's own binary is not the first in PATH: %s", p.path())
	}
	var missing *exec.Error
	if _, err := p.LookPath("no-such-program"); !errors.As(err, &missing) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestWhatIsSpawnedIsFoundStoppedAndKilled(t *testing.T) {
	p, h := prepared(t)
	if err := p.Signal(t.Context(), "h", "long", syscall.SIGTERM); err == nil {
		t.Error("a signal reached nothing, without an error")
	}
	if err := p.Spawn(h, "long", exec.Command("sh", "-c", "sleep 1001 & exec sleep 1002")); err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		nstest.Wait(t, "ps", func() error {
			if now, pids := p.State("h", "long"); now != want || want != "down" && len(pids) != 2 {
				return fmt.Errorf("it is %s, processes %v; want %s", now, pids, want)
			}
			return nil
		})
	}
	is("running")
	if err := p.Signal(t.Context(), "h", "", syscall.SIGSTOP); err != nil { // the whole node
		t.Error(err)
	}
	if now, _ := p.State("h", "long"); now != "stopped" {
		t.Errorf("after SIGSTOP it is %s", now)
	}
	if err := p.Signal(t.Context(), "h", "long", syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	is("running")
	if err := p.Kill(t.Context(), "h", "long"); err != nil || p.Running("h", "long") {
		t.Errorf("after kill it runs: %v, %v", p.Running("h", "long"), err)
	}
	is("down")
	nstest.Wait(t, "ps", func() error { // its parent hears of it some time later
		if err := p.Exited("h", "long"); err == nil || !strings.Contains(err.Error(), "signal: killed") {
			return fmt.Errorf("its end is %w", err)
		}
		return nil
	})
}

func TestTheEndOfAProgramIsToldWithTheEndOfItsLog(t *testing.T) {
	p, h := prepared(t)
	for _, c := range []struct {
		name, script string
		want         *Ended
	}{
		{"long", "sleep 1003 & exit 0", nil}, // it went into the background
		{"short", "exit 0", &Ended{Name: "h/short", How: "exit status 0", Done: true}},
		{"bad", "echo no such option; exit 3", &Ended{Name: "h/bad", How: "exit status 3", Log: "    no such option"}},
	} {
		fresh := New(p.Config) // as a command does: it knows nothing of the others
		if err := fresh.Spawn(h, c.name, exec.Command("sh", "-c", c.script)); err != nil {
			t.Fatal(err)
		}
		nstest.Wait(t, p.Dir.Log("h", c.name), func() error { // the program itself; what it left behind may run
			if fresh.Exited("h", c.name) == nil {
				return errors.New("it runs")
			}
			return nil
		})
		err := fresh.Stays(t.Context(), file.Action{Verb: "start"})
		var ended *Ended
		if errors.As(err, &ended); (ended == nil) != (c.want == nil) {
			t.Errorf("%s: %v", c.name, err)
		} else if ended != nil && (ended.Name != c.want.Name || ended.How != c.want.How || ended.Done != c.want.Done || !strings.Contains(ended.Log, c.want.Log)) {
			t.Errorf("%s: %+v, want %+v", c.name, ended, c.want)
		}
	}
	if err := p.Stays(t.Context(), file.Action{Verb: "kill"}); err != nil {
		t.Errorf("after an action that starts nothing: %v", err)
	}
}

func TestAProgramOutsideHasTheNamespacesOfWhoStartsIt(t *testing.T) {
	p, _ := prepared(t)
	if err := os.MkdirAll(p.Dir.Node("mgmt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.SpawnOutside("mgmt", "engine", exec.Command("readlink", "/proc/self/ns/net")); err != nil {
		t.Fatal(err)
	}
	nstest.Wait(t, p.Dir.Log("mgmt", "engine"), func() error {
		if p.Exited("mgmt", "engine") == nil {
			return errors.New("it runs")
		}
		return nil
	})
	here, err := os.Readlink("/proc/self/ns/net")
	if log, _ := os.ReadFile(p.Dir.Log("mgmt", "engine")); err != nil || strings.TrimSpace(string(log)) != here {
		t.Errorf("it was in %s, we are in %s: %v", log, here, err)
	}
}
