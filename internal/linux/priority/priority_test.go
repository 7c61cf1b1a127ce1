package priority_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/linux/priority"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// childEnv makes the test binary a process that changes its priority and shows it.
const childEnv = "SCAFFOLD_TEST_PRIORITY"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		nstest.Main(m)
		return
	}
	if err := priority.Set(-7); err != nil {
		println(err.Error())
		os.Exit(1)
	}
	out, err := exec.Command("sh", "-c", `for t in /proc/$PPID/task/*; do echo thread $(cut -d" " -f19 $t/stat); done; cat /proc/$PPID/autogroup`).Output()
	os.Stdout.Write(out)
	if err != nil {
		os.Exit(2)
	}
}

// show is what a process that changed its priority says of its threads and its session.
func show(t *testing.T, leads bool) string {
	t.Helper()
	nstest.Root(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: leads}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestAllThreadsAndTheOwnSessionGetTheLevel(t *testing.T) {
	out := show(t, true)
	if n := strings.Count(out, "thread "); n < 2 || strings.Count(out, "thread -7\n") != n {
		t.Errorf("want several threads of level -7:\n%s", out)
	}
	if strings.Contains(out, "autogroup") && !strings.Contains(out, "nice -7") {
		t.Errorf("want a session of level -7:\n%s", out)
	}
}

func TestTheSessionOfOthersKeepsItsLevel(t *testing.T) {
	if out := show(t, false); strings.Contains(out, "autogroup") && !strings.Contains(out, "nice 0") {
		t.Errorf("want the session at level 0:\n%s", out)
	}
}
