package lab_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/timeline"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// scaffold runs a command of the product to its end.
func scaffold(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must is scaffold for a command that has to succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := scaffold(t, args...)
	if code != 0 {
		t.Fatalf("scaffold %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

func TestTwoCommandsReachAServiceByName(t *testing.T) {
	nstest.Root(t)
	before, name := lab.Machine(t), nstest.LabNamed("two")
	must(t, "lab", "up", "--name", name, "../../examples/two.yaml")
	t.Cleanup(func() { scaffold(t, "lab", "down", name) })
	seen := map[string]bool{}
	nstest.Wait(t, "scaffold service show hello", func() error {
		seen[must(t, "lab", "exec", "--lab", name, "c1", "--", "curl", "-sS", "-m", "20", "http://hello.svc/")] = true
		if !seen["hello from s1\n"] || !seen["hello from s2\n"] {
			return fmt.Errorf("only these have answered: %v", seen)
		}
		return nil
	})
	if len(seen) != 2 {
		t.Errorf("answers %v, want those of s1 and s2", seen)
	}
	exitCodes(t, name)
	statusOf(t, name)
	must(t, "lab", "down", name)
	if after := lab.Machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func exitCodes(t *testing.T, name string) {
	t.Helper()
	for want, args := range map[int][]string{
		42: {"lab", "exec", "--lab", name, "c1", "sh", "-c", "exit 42"},
		3:  {"lab", "exec", "--lab", name, "c9", "true"},
		4:  {"lab", "up", "--name", name, "../../examples/two.yaml"},
		2:  {"lab", "cut", "--lab", name, "c1", "s1"},
	} {
		if _, errs, code := scaffold(t, args...); code != want {
			t.Errorf("scaffold %s: exit code %d, want %d: %s", strings.Join(args, " "), code, want, errs)
		}
	}
}

func statusOf(t *testing.T, name string) {
	t.Helper()
	var labs []lab.Status
	if err := json.Unmarshal([]byte(must(t, "lab", "status", name, "-o", "json")), &labs); err != nil {
		t.Fatal(err)
	}
	for _, n := range labs[0].Nodes {
		for _, p := range n.Processes {
			if p.State != "running" || len(p.PIDs) == 0 {
				t.Errorf("%s/%s: %+v", n.Name, p.Name, p)
			}
		}
	}
	for _, l := range labs[0].Links {
		if l.State != "up" {
			t.Errorf("link %+v", l)
		}
	}
}

func TestCtrlCAtAnyStepLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	nstest.Root(t)
	before := lab.Machine(t)
	for _, step := range []string{"directories", "namespaces", "daemons", "network", "programs"} {
		interruptAt(t, step)
		if after := lab.Machine(t); after != before {
			t.Fatalf("Ctrl-C at %q, before:\n%s\nafter:\n%s", step, before, after)
		}
	}
}

// interruptAt sends SIGINT when the step is announced.
func interruptAt(t *testing.T, step string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "lab", "up", "--name", nstest.LabNamed("ctrlc"), "../../examples/two.yaml")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), ": "+step) {
			cmd.Process.Signal(syscall.SIGINT)
		}
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(said, "interrupted") {
		t.Errorf("Ctrl-C at %q: exit code %d\n%s", step, code, said)
	}
}

func TestARunGivesItsResults(t *testing.T) {
	nstest.Root(t)
	before := lab.Machine(t)
	text, err := os.ReadFile("../../examples/two.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.yaml")
	text = append(text, `
timeline:
  - {at: 0s, do: "drain hello s1"}
  - {at: 0s, do: "exec c1: curl -sS http://hello.svc/"}
  - {at: 2s, do: "restart ctl"}
measure:
  - {name: by address, node: c1, run: "curl -sS http://[${addr:hello}]/"}
`...)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	var r timeline.Result
	if err := json.Unmarshal([]byte(must(t, "lab", "run", "--name", nstest.LabNamed("result"), "-o", "json", file)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Steps) != 3 || r.Failed() || !strings.HasPrefix(r.Steps[1].Output, "hello from s") || !strings.HasPrefix(r.Measures[0].Output, "hello from s") {
		t.Errorf("result %+v", r)
	}
	if after := lab.Machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
