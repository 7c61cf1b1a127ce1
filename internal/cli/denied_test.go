package cli

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asSomebody runs f as a user whom root's files do not let in.
func asSomebody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		unix.Setfsuid(65534)   // for this thread alone, and its capabilities over files go with it
		f()
	}()
	<-done
}

// closed is a run directory with a daemon's socket in it that somebody may not use.
func closed(t *testing.T, socket, what string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli") // a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, socket)
	if err := errors.Join(os.Chmod(dir, 0o755), os.MkdirAll(filepath.Dir(path), 0o755)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := os.Chmod(filepath.Join(dir, what), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, what), 0o700) })
	return dir
}

// A daemon or lab that a user may not speak to is there all the same, and is asked, or is said to be out of sight.
func TestWhatAUserMayNotSeeIsNotTakenForMissing(t *testing.T) {
	for name, c := range map[string]struct{ socket, closed, asks string }{
		"the daemon of this machine": {"hostd.sock", "hostd.sock", "hostd.sock"},
		"its directory":              {"hostd.sock", ".", "hostd.sock"},
		"a lab's":                    {"lab/one/s1/hostd.sock", "lab/one/s1/hostd.sock", "lab/one/s1/hostd.sock"},
		"a lab's directory":          {"lab/one/s1/hostd.sock", "lab", ""},
	} {
		r := &remote{run: closed(t, c.socket, c.closed), getenv: func(string) string { return "" }, alive: accepts}
		var nodes []nodeSocket
		var err error
		asSomebody(t, func() { nodes, err = r.hosts("") })
		var known *exitError
		switch {
		case c.asks == "" && (!errors.As(err, &known) || known.code != ExitMissing || !strings.Contains(known.hint, "sudo")):
			t.Errorf("%s: %v, want exit code %d and the word sudo", name, err, ExitMissing)
		case c.asks != "" && (len(nodes) != 1 || nodes[0].path != "unix:"+filepath.Join(r.run, c.asks)):
			t.Errorf("%s: asks %v (%v), want %s", name, nodes, err, c.asks)
		}
	}
}

// Whom the daemon's socket does not let in hears that, and what helps.
func TestAGuestCommandWithoutTheRightSaysSo(t *testing.T) {
	dir := closed(t, "hostd.sock", "hostd.sock")
	cmd := exec.Command("/proc/self/exe", "guest", "ls")
	cmd.Args[0] = "scaffold"
	cmd.Env = append(os.Environ(), apiVariable+"=unix:"+filepath.Join(dir, "hostd.sock"))
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != int(ExitMissing) ||
		!strings.Contains(string(out), "permission denied") || !strings.Contains(string(out), "sudo") {
		t.Errorf("%v: %s; want exit code %d, and what is missing", err, out, ExitMissing)
	}
}

func TestGuestsNeedAHostDaemon(t *testing.T) {
	f := &flows{}
	f.remote = machine(t, "controld.sock")
	_, _, err := f.local()
	var known *exitError
	if !errors.As(err, &known) || known.code != ExitUnreachable || !strings.Contains(err.Error(), "no host daemon") || !strings.Contains(known.hint, "scaffold hostd") {
		t.Errorf("without a host's daemon: %v", err)
	}
}
