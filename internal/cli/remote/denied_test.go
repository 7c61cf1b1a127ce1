package remote_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/remote/remotetest"
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

// A daemon or lab that a user may not speak to is there all the same, and is asked, or is said to be out of sight.
func TestWhatAUserMayNotSeeIsNotTakenForMissing(t *testing.T) {
	for name, c := range map[string]struct{ socket, closed, asks string }{
		"the daemon of this machine": {"hostd.sock", "hostd.sock", "hostd.sock"},
		"its directory":              {"hostd.sock", ".", "hostd.sock"},
		"a lab's":                    {"lab/one/s1/hostd.sock", "lab/one/s1/hostd.sock", "lab/one/s1/hostd.sock"},
		"a lab's directory":          {"lab/one/s1/hostd.sock", "lab", ""},
	} {
		r := &remote.Remote{Run: remotetest.Closed(t, c.socket, c.closed), Getenv: func(string) string { return "" }, Alive: remote.Accepts, Mine: remote.Writable, Login: func() string { return "" }}
		var nodes []remote.NodeSocket
		var err error
		asSomebody(t, func() { nodes, err = r.Hosts("") })
		var known *exit.Error
		switch {
		case c.asks == "" && (!errors.As(err, &known) || known.Code != exit.Missing || !strings.Contains(known.Hint, "sudo")):
			t.Errorf("%s: %v, want exit code %d and the word sudo", name, err, exit.Missing)
		case c.asks != "" && (len(nodes) != 1 || nodes[0].Path != "unix:"+filepath.Join(r.Run, c.asks)):
			t.Errorf("%s: asks %v (%v), want %s", name, nodes, err, c.asks)
		}
	}
}

func TestGuestsNeedAHostDaemon(t *testing.T) {
	f := &remote.HostDaemons{}
	f.Remote = remotetest.Machine(t, "controld.sock")
	_, _, err := f.Local()
	var known *exit.Error
	if !errors.As(err, &known) || known.Code != exit.Unreachable || !strings.Contains(err.Error(), "no host daemon") || !strings.Contains(known.Hint, "scaffold hostd") {
		t.Errorf("without a host's daemon: %v", err)
	}
}
