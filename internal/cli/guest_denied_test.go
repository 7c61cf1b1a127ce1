package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/remote/remotetest"
)

// Whom the daemon's socket does not let in hears that, and what helps.
func TestAGuestCommandWithoutTheRightSaysSo(t *testing.T) {
	dir := remotetest.Closed(t, "hostd.sock", "hostd.sock")
	cmd := exec.Command("/proc/self/exe", "guest", "ls")
	cmd.Args[0] = "scaffold"
	cmd.Env = append(os.Environ(), remote.APIVariable+"=unix:"+filepath.Join(dir, "hostd.sock"))
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != int(exit.Missing) ||
		!strings.Contains(string(out), "permission denied") || !strings.Contains(string(out), "its socket is for root") {
		t.Errorf("%v: %s; want exit code %d, and what is missing", err, out, exit.Missing)
	}
}
