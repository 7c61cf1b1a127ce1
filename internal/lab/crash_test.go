package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// crashEnv makes the test binary a process that brings a lab up and dies by SIGKILL before the step
// that the variable names.
const crashEnv = "SCAFFOLD_LAB_CRASH"

func TestCrashHelper(t *testing.T) {
	step := os.Getenv(crashEnv)
	if step == "" {
		t.Skip("only as a child of the crash tests")
	}
	f, opt := smallLab(t, "crash")
	opt.Log = func(format string, args ...any) {
		if strings.Contains(fmt.Sprintf(format, args...), step) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	Run(context.Background(), f, opt)
	t.Fatalf("no step %q", step)
}

// crash brings a lab up to a step in a process that is killed there.
func crash(t *testing.T, step string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashHelper$", "-test.v")
	cmd.Env = append(os.Environ(), crashEnv+"="+step)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the helper was to be killed: %v\n%s", err, out)
	}
	awaitUnlocked(t, nstest.LabNamed("crash"))
}

// awaitUnlocked waits until nobody holds a lab's lock. A child that was between fork and exec when its parent was killed
// has a copy of the descriptor, and with it the lock, until it gets a processor: commands leave such a lab to the next one.
func awaitUnlocked(t *testing.T, lab string) {
	t.Helper()
	f, err := os.Open(filepath.Join(Options{}.dir(), "."+lab+".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

func TestTheNextCommandRemovesWhatACrashLeft(t *testing.T) {
	safety.Test(t, safety.Trace)
	nstest.Root(t)
	before := machine(t)
	for _, step := range []string{"directories", "namespaces", "daemons", "network", "programs", "kill s1", "down"} {
		crash(t, step)
		if machine(t) == before {
			t.Fatalf("the crash before %q left nothing: the test shows nothing", step)
		}
		if removed, err := Sweep(t.Context(), Options{Log: t.Logf}); err != nil || len(removed) == 0 {
			t.Errorf("crash before %q: %v", step, err)
		}
		if after := machine(t); after != before {
			t.Fatalf("crash before %q, before:\n%s\nafter:\n%s", step, before, after)
		}
	}
	crash(t, "programs")
	l := upLab(t, "crash") // up itself clears the way
	if err := Down(t.Context(), l.File.Name, l.opt); err != nil {
		t.Error(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestALabInOtherHandsIsLeftAlone(t *testing.T) {
	f, opt := smallLab(t, "held")
	l, err := up(t.Context(), f, opt, state.Running)
	if err != nil {
		t.Fatal(err)
	}
	defer l.remove()
	var busy *state.BusyError
	if err := Down(t.Context(), f.Name, opt); !errors.As(err, &busy) || busy.Owner != os.Getpid() {
		t.Errorf("down of a lab in use: %v", err)
	}
	if removed, err := Sweep(t.Context(), opt); err != nil || len(removed) > 0 || len(l.procs.Root.PIDs()) == 0 {
		t.Errorf("sweep took a lab in use: %v", err)
	}
}

// ask sends a datagram and returns what came back as an error.
func ask(to netip.AddrPort) error {
	c, err := dial(to)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	_, err = c.Read(make([]byte, 1))
	return err
}

// dial looks the zone up itself: package net remembers for a minute which number an interface had, also in
// another namespace.
func dial(to netip.AddrPort) (*net.UDPConn, error) {
	addr := net.UDPAddrFromAddrPort(to)
	if dev, err := net.InterfaceByName(addr.Zone); err == nil { // else it is a number
		addr.Zone = strconv.Itoa(dev.Index)
	}
	return net.DialUDP("udp6", nil, addr)
}
