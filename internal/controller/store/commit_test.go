package store

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/api/versions"
)

// manyHosts are more changes than a transaction holds: one host goes, the others are of a generation.
func manyHosts(generation int) []Change {
	changes := []Change{DeleteHost(fmt.Sprint("only", generation-1)), PutHost(Host{Name: fmt.Sprint("only", generation)})}
	for i := range 3*elsewhereOps + 1 {
		changes = append(changes, PutHost(Host{Name: fmt.Sprint("h", i), BootID: fmt.Sprint(generation)}))
	}
	return changes
}

// whole is the generation that all hosts are of, 0 where there are none; it fails where they are of several.
func whole(t *testing.T, s *Store) int {
	t.Helper()
	state, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Hosts) == 0 {
		return 0
	}
	count := map[string]int{}
	for _, h := range state.Hosts {
		generation, only := strings.CutPrefix(h.Name, "only")
		if !only {
			generation = h.BootID
		}
		count[generation]++
	}
	if len(count) != 1 || len(state.Hosts) != 3*elsewhereOps+2 {
		t.Fatalf("a commit is there in part: hosts by generation %v", count)
	}
	for generation := range count {
		n, _ := strconv.Atoi(generation)
		return n
	}
	return 0
}

func TestMoreChangesThanATransactionHolds(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	for generation := range 2 {
		if err := s.Commit(t.Context(), manyHosts(generation+1)...); err != nil {
			t.Fatal(err)
		}
		if got := whole(t, s); got != generation+1 {
			t.Errorf("generation %d is there, want %d", got, generation+1)
		}
	}
	if all, err := s.records(t.Context()); err != nil || len(all) != 3*elsewhereOps+3 {
		t.Errorf("%d records, %v; want %d: nothing is left of the way", len(all), err, 3*elsewhereOps+3)
	}
}

// Where a test's second self has its store, and behind which transaction it is killed.
const (
	inside    = "SCAFFOLD_STORE_TEST_DIR"
	diesAfter = "SCAFFOLD_STORE_TEST_DIES_AFTER"
)

// TestAControllerThatIsKilledBetweenTransactionsHasSavedAllOrNothing: by SIGKILL, behind each transaction in turn. What
// was answered with success is there.
func TestAControllerThatIsKilledBetweenTransactionsHasSavedAllOrNothing(t *testing.T) {
	if dir := os.Getenv(inside); dir != "" {
		dieCommitting(t, dir)
		return
	}
	was := map[int]bool{}
	for n := 1; ; n++ {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"="+dir, diesAfter+"="+strconv.Itoa(n))
		out, err := cmd.CombinedOutput()
		killed := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if err != nil && !killed {
			t.Fatalf("%v\n%s", err, out)
		}
		s := open(t, dir)
		if got := whole(t, s); got != 1 && got != 2 || !killed && got != 2 {
			t.Errorf("killed behind transaction %d: generation %d is there, want 1 or 2", n, got)
		} else {
			was[got] = true
		}
		if _, err := s.Begin(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		before := whole(t, s)
		if err := s.Commit(t.Context(), manyHosts(before+1)...); err != nil || whole(t, s) != before+1 {
			t.Errorf("the next commit after that: %v", err)
		}
		s.Close()
		if !killed {
			if n < 8 || !was[1] || !was[2] {
				t.Errorf("%d transactions, outcomes %v: the test kills too seldom", n-1, was)
			}
			return
		}
	}
}

func dieCommitting(t *testing.T, dir string) {
	s := open(t, dir)
	if _, err := s.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), manyHosts(1)...); err != nil {
		t.Fatal(err)
	}
	left, _ := strconv.Atoi(os.Getenv(diesAfter))
	s.cfg.wrote = func() {
		if left--; left == 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if err := s.Commit(t.Context(), manyHosts(2)...); err != nil {
		t.Fatal(err)
	}
	s.cfg.wrote = nil
	s.Close()
}

// TestACommitThatFailsOnItsWaySaysTruly: an error means that nothing of it counts, success that all of it does, behind
// whichever transaction the caller's time is up.
func TestACommitThatFailsOnItsWaySaysTruly(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	if _, err := s.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), manyHosts(1)...); err != nil {
		t.Fatal(err)
	}
	generation, failed := 1, 0
	for n := 1; ; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		left := n
		s.cfg.wrote = func() {
			if left--; left == 0 {
				cancel()
			}
		}
		err := s.Commit(ctx, manyHosts(generation+1)...)
		s.cfg.wrote = nil
		if err := s.Probe(t.Context()); err != nil { // a write that was given up is done by then
			t.Fatal(err)
		}
		got := whole(t, s)
		switch {
		case err != nil && Doubtful(err) && got != generation:
			generation = got // it said that it does not know
		case err != nil && got != generation, err == nil && got != generation+1:
			t.Fatalf("ended behind transaction %d: generation %d is there and %d was before, and the answer is %v", n, got, generation, err)
		case err == nil:
			generation = got
		default:
			failed++
		}
		cancel()
		if left > 0 {
			if failed < 4 {
				t.Errorf("%d commits failed: the test ends too few", failed)
			}
			return
		}
	}
}

// TestAVersionOfBeforeGoesOnWithACommit: it knows the form of a migration that is under way.
func TestAVersionOfBeforeGoesOnWithACommit(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	if _, err := s.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.cfg.wrote = func() {
		if all, err := s.records(context.Background()); err == nil && bytes.Contains(all[schemaKey], []byte("under_way")) {
			cancel()
		}
	}
	if err := s.Commit(ctx, manyHosts(1)...); err != nil {
		t.Fatal(err)
	}
	s.cfg.wrote = nil
	all, err := s.records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := formOf(all)
	if err != nil || !f.Under || f.Number != versions.Schema().To {
		t.Fatalf("%+v, %v: want a commit that is under way", f, err)
	}
	if err := s.settle(t.Context(), f, all); err != nil { // what they do
		t.Fatal(err)
	}
	if got := whole(t, s); got != 1 {
		t.Errorf("generation %d is there, want 1", got)
	}
	var b bytes.Buffer
	if err := s.Backup(t.Context(), "now", "v1", &b); err != nil || strings.Contains(b.String(), staged) {
		t.Errorf("a backup: %v", err)
	}
}

// TestARecordThatChangesTwiceInACommit: etcd refuses the second one, the last is meant.
func TestARecordThatChangesTwiceInACommit(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), Network: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Commit(t.Context(), PutHost(Host{Name: "a"}), PutHost(Host{Name: "b"}), DeleteHost("a")); err != nil {
		t.Fatal(err)
	}
	if state, err := s.Load(t.Context()); err != nil || len(state.Hosts) != 1 || state.Hosts[0].Name != "b" {
		t.Errorf("%+v, %v; want b alone", state.Hosts, err)
	}
	var many []Change
	for i := range embeddedOps {
		many = append(many, PutHost(Host{Name: fmt.Sprint("h", i)}))
	}
	writes := 0
	s.cfg.wrote = func() { writes++ }
	if err := s.Commit(t.Context(), many...); err != nil || writes != 1 {
		t.Errorf("%d changes in %d writes, %v; want one", len(many), writes, err)
	}
}
