package badinput

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/internal/tests/seed"
)

// moments is how often each command is interrupted by each signal. MOMENTS=10 looks closer, SCAFFOLD_SEED=N
// repeats a run.
func moments() int {
	if n, err := strconv.Atoi(os.Getenv("MOMENTS")); err == nil {
		return n
	}
	if nstest.Long() {
		return 5
	}
	return 1
}

// someOf is SIGKILL and one of the signals that a command handles, all of them in a long run: the handler is the same.
func someOf(random *rand.Rand) []syscall.Signal {
	if nstest.Long() {
		return signals
	}
	return []syscall.Signal{signals[random.IntN(len(signals)-1)], syscall.SIGKILL}
}

var commands = []struct {
	name string
	args []string
	long time.Duration // within which moments are chosen
}{
	{"lab up", []string{"lab", "up", "../../../examples/two.yaml"}, 3 * time.Second},
	{"lab run", []string{"lab", "run", "testdata/long.yaml"}, 6 * time.Second},
	{"demo", []string{"demo"}, 10 * time.Second},
	{"demo boost", []string{"demo", "boost"}, 20 * time.Second},
	{"bench", []string{"bench", "churn"}, 5 * time.Second},
}

var signals = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL}

func TestASignalAtAnyMomentLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	nstest.Root(t)
	n := seed.Number(uint64(time.Now().UnixNano()))
	t.Logf("SCAFFOLD_SEED=%d", n)
	random := rand.New(rand.NewPCG(n, 0))
	t.Setenv("PATH", benchmarks(t)+":"+os.Getenv("PATH"))
	before := snap(t)
	for _, c := range commands {
		for _, s := range someOf(random) {
			for range moments() {
				at := time.Duration(random.Int64N(int64(c.long)))
				interrupt(t, c.args, s, at)
				before.same(t, fmt.Sprintf("%s, %v after %v (SCAFFOLD_SEED=%d)", c.name, s, at, n))
			}
		}
	}
}

// benchmarks is a directory with the program that scaffold bench takes its place with.
func benchmarks(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "-C", "../../../bench", "build", "-buildvcs=false", "-ldflags=-w", "-o", filepath.Join(dir, "scaffold-bench"), "./cmd/scaffold-bench")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return dir
}

// interrupt starts a command, sends it the signal after a while and waits for its end. What SIGKILL
// leaves is for the next lab command.
func interrupt(t *testing.T, args []string, s syscall.Signal, at time.Duration) {
	t.Helper()
	cmd := exec.Command(self, append(args, "--name", nstest.LabName())...)
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // a file: what a killed command started may outlive it
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	temporary := t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(at, func() { cmd.Process.Signal(s) })
	cmd.Wait() // its end is what follows
	said, _ := os.ReadFile(out.Name())
	switch code := cmd.ProcessState.ExitCode(); {
	case s == syscall.SIGKILL, code == 0: // it was through
		scaffold(t, "lab", "down", nstest.LabName())
		if left, err := filepath.Glob(filepath.Join(temporary, "scaffold-lab-*")); err != nil || len(left) > 0 {
			t.Errorf("%v: %v after %v: %v, %v are left", args, s, at, err, left)
		}
	case code == -1:
		// Before the first line of Go's own code a signal ends the process; nothing has begun then.
		if len(said) > 0 {
			t.Errorf("%v: %v after %v ended it at once:\n%s", args, s, at, said)
		}
	case code != 1 || !strings.Contains(lastLine(string(said)), "interrupted"):
		t.Errorf("%v: %v after %v: exit code %d\n%s", args, s, at, code, said)
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func TestAReaderThatGoesAwayEndsTheLab(t *testing.T) {
	before := snap(t)
	cmd := exec.Command("sh", "-c", path(t)+" demo --name "+nstest.LabName()+" 2>&1 | head -n 4")
	if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	before.same(t, "demo | head")
}

// path is this binary for a shell, which has another /proc/self/exe.
func path(t *testing.T) string {
	t.Helper()
	file, err := filepath.EvalSymlinks(self)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
