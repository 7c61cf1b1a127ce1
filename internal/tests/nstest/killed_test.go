package nstest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/tests/safety"
)

const busyEnv = "SCAFFOLD_TEST_BUSY"

// TestBusyHelper is what TestAKilledRunLeavesNothing kills.
func TestBusyHelper(t *testing.T) {
	if os.Getenv(busyEnv) == "" {
		t.Skipf("runs only as the program that TestAKilledRunLeavesNothing kills, with %s set", busyEnv)
	}
	New(t, "busy").Start(t, "sleep", "1000")
	fmt.Println("busy")
	select {}
}

// TestAKilledRunLeavesNothing: go test has gone before, and with it the readers of what we print.
func TestAKilledRunLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	Root(t)
	root, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestBusyHelper$")
	cmd.Stdout, cmd.Stderr = w, w
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, childEnv+"=") })
	cmd.Env = append(cmd.Env, busyEnv+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	for lines := bufio.NewScanner(r); lines.Scan() && lines.Text() != "busy"; {
	}
	r.Close()
	group := filepath.Join(root, fmt.Sprintf("scaffold-test-%d", cmd.Process.Pid))
	if _, err := os.Stat(group); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if _, err := os.Stat(group); err == nil {
		t.Errorf("%s is still there, with what the tests started", group)
		removeCgroup(group)
	}
}

// Numbers of processes come again, and a run that was killed with its supervisor left its cgroup.
func TestTheGroupOfAFormerRunIsNotInTheWay(t *testing.T) {
	Root(t)
	name := fmt.Sprintf("scaffold-test-%d-former", os.Getpid())
	former, err := newGroup(name)
	if err != nil {
		t.Fatal(err)
	}
	former.dir.Close()
	now, err := newGroup(name)
	if err != nil {
		t.Fatal(err)
	}
	now.remove()
}

// Labs are in cgroups of their own, which end with the run as well.
func TestLabsOfARunEndWithIt(t *testing.T) {
	safety.Test(t, safety.Trace)
	Root(t)
	root, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprint(os.Getpid(), "0") // nobody's
	mine := []string{"test_" + id, "test_" + id + "_up", "test_" + id + "k", "small_" + id}
	others := []string{"test_1" + id, "test_" + id + "1", "small_" + id + "_up"}
	start := func(lab string) *exec.Cmd {
		g, err := newGroup("scaffold-lab-" + lab)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeCgroup(filepath.Join(root, "scaffold-lab-"+lab)) })
		defer g.dir.Close()
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.dir.Fd())}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		return cmd
	}
	var ends []*exec.Cmd
	for _, lab := range mine {
		ends = append(ends, start(lab))
	}
	for _, lab := range others {
		start(lab)
	}
	removeLabs(root, id)
	for _, cmd := range ends {
		cmd.Wait() // hangs where it was left
	}
	for _, lab := range others {
		if _, err := os.Stat(filepath.Join(root, "scaffold-lab-"+lab)); err != nil {
			t.Errorf("a lab of another run is gone: %v", err)
		}
	}
}
