package divert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// Where connections go on by maps of another version these stay, whoever wants to take over; where none do they make room.
func TestMapsOfAnotherVersionMakeRoomForNoConnection(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, carries := range []int{0, 3} {
		dir := t.TempDir()
		for _, name := range pinned {
			must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		loads := 0
		err := replacing(Config{Pin: dir, Carries: carries}, func() error {
			if loads++; exists(filepath.Join(dir, "sessions")) {
				return fmt.Errorf("map sessions: %w", ebpf.ErrMapIncompatible)
			}
			return nil
		})
		if there := exists(filepath.Join(dir, "sessions")); there != (carries > 0) || errors.Is(err, ErrOtherVersion) != there || (err != nil) != there {
			t.Errorf("%d connections are carried: %v after %d loads; the pin is there: %v", carries, err, loads, there)
		}
		if carries > 0 && (!strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "3 in number") || loads != 1) {
			t.Errorf("%v: want where the pins are and how many connections; %d loads", err, loads)
		}
	}
	if err := replacing(Config{Carries: 1}, func() error { return os.ErrPermission }); !errors.Is(err, os.ErrPermission) || errors.Is(err, ErrOtherVersion) {
		t.Errorf("another error: %v", err)
	}
}

// The same in the kernel: a program of another version is refused, and what it was refused for goes on.
func TestAnotherVersionsProgramLeavesTheMapsOfConnections(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n, ports := router(t)
	dir := filepath.Join(nstest.BPFFS, "boost-version")
	must(t, os.MkdirAll(dir, 0o700))
	t.Cleanup(func() { os.RemoveAll(dir) })
	other, err := ebpf.NewMap(&ebpf.MapSpec{Name: "sessions", Type: ebpf.Hash, KeySize: 36, ValueSize: 48, MaxEntries: 16}) // of another shape
	must(t, err)
	defer other.Close()
	pin := filepath.Join(dir, "sessions")
	must(t, other.Pin(pin))
	n.Do(func() {
		d, err := Open(Config{Ports: ports, Pin: dir, Carries: 1})
		if err == nil {
			d.Close()
		}
		if !errors.Is(err, ErrOtherVersion) {
			t.Errorf("it has taken over: %v", err)
		}
	})
	left, err := ebpf.LoadPinnedMap(pin, nil)
	must(t, err)
	defer left.Close()
	if left.ValueSize() != 48 {
		t.Error("the map of the connections is another one")
	}
	openIn(t, n, Config{Ports: ports, Pin: dir}) // without connections it makes room
}

// A program that does not come to work, for whatever reason, leaves the sessions to the one before.
func TestAnOpenThatFailsLeavesSessions(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n, ports := router(t)
	dir := filepath.Join(nstest.BPFFS, "boost-fails")
	first := openIn(t, n, Config{Ports: ports, Pin: dir})
	local, remote := addrPort([16]byte{10: 0xff, 11: 0xff, 12: 192, 14: 2, 15: 1}, portBytes(80)), addrPort([16]byte{10: 0xff, 11: 0xff, 12: 192, 14: 2, 15: 2}, portBytes(99))
	must(t, first.Begin(local, remote), first.Leave())
	first.lock, first.ring, first.net, first.objs = nil, nil, nil, divertObjects{} // for Close
	n.Do(func() {
		if d, err := Open(Config{Ports: append([]int{1 << 30}, ports...), Pin: dir, Carries: 1}); err == nil {
			d.Close()
			t.Error("a port that is not there")
		}
	})
	second := openIn(t, n, Config{Ports: ports, Pin: dir, Carries: 1})
	if count, err := second.Sessions(); count != 1 || err != nil {
		t.Errorf("%d sessions are left, %v", count, err)
	}
}
