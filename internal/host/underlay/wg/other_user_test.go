package wg

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/linux/nsenter"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

const formerName = "@scaffold-wireguard-test"

// A local user who binds the name first is told nothing, and is in nobody's way.
func TestTheKeyDoesNotGoToWhoeverHasTheName(t *testing.T) {
	safety.Test(t, safety.Door)
	nstest.Root(t)
	ns := nstest.New(t, "host")
	var l net.Listener
	var err error
	ns.Nobody(t, func() { l, err = net.Listen("unix", formerName) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"version\":1}")) // it may be gone
			b, _ := io.ReadAll(c)
			heard <- string(b)
		}
	}()
	ns.Do(func() {
		if p := underlay.FindProcess("test"); p != nil {
			t.Error("another user's socket was taken for the process")
		}
	})
	e := newEnd(t, ns)
	e.set(underlay.Setup{Listen: testPort, Router: true})
	ns.Do(func() {
		s, err := e.proc.State()
		if err != nil || string(s.Setup.Key) != string(e.key) {
			t.Errorf("the process does not keep what it was told: %v", err)
		}
	})
	l.Close()
	for len(heard) > 0 {
		if b := <-heard; b != "" {
			t.Errorf("the other user was told %q", b)
		}
	}
	ns.Do(func() {
		if err := e.proc.End(); err != nil {
			t.Error(err)
		}
		if p := underlay.FindProcess("test"); p != nil {
			t.Error("it is there after its end")
		}
	})
}

// A process that a daemon of before has started listens at the name: the daemon after the upgrade takes it over, with
// its tunnels.
func TestAProcessOfBeforeIsTakenOver(t *testing.T) {
	nstest.Root(t)
	ns := nstest.New(t, "host")
	ns.Do(func() {
		l, err := net.Listen("unix", formerName)
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.(*net.UnixListener).File()
		if err != nil {
			t.Fatal(err)
		}
		own, err := nsenter.Here()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe", "wireguard")
		cmd.ExtraFiles = []*os.File{f, own}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNET}
		runtime.LockOSThread()
		err = cmd.Start()
		runtime.UnlockOSThread()
		l.Close()
		f.Close()
		own.Close()
		if err != nil {
			t.Fatal(err)
		}
		go cmd.Wait() // it is ended below
		p := underlay.FindProcess("test")
		if p == nil {
			cmd.Process.Kill()
			t.Fatal("it was not found")
		}
		key := underlay.NewKey()
		if err := p.Set(underlay.Setup{Key: key, Listen: testPort, Router: true}); err != nil {
			t.Error(err)
		}
		again, err := underlay.StartProcess("test", []string{"/bin/false"})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := again.State(); err != nil || string(s.Setup.Key) != string(key) {
			t.Errorf("what it keeps was lost: %v", err)
		}
		if err := again.End(); err != nil {
			t.Error(err)
		}
	})
}

// A user who finds the socket may not open it, and one that listens at its path cannot be: the directory is root's.
func TestTheSocketIsRootsAlone(t *testing.T) {
	nstest.Root(t)
	ns := nstest.New(t, "host")
	newEnd(t, ns)
	socks, _ := os.ReadDir("/run/scaffold/net")
	if len(socks) == 0 {
		t.Fatal("no directory for sockets")
	}
	ns.Nobody(t, func() {
		if all, err := os.ReadDir("/run/scaffold/net"); err == nil {
			t.Errorf("nobody lists %v", all)
		}
		if c, err := net.Dial("unix", formerName); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("the former name answers: %v, %v", c, err)
		}
	})
}
