package api_test

import (
	"errors"
	"net"
	"testing"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A local user who binds a daemon's name first keeps no daemon from starting.
func TestANameThatAnybodyCanBindKeepsNoDaemonOut(t *testing.T) {
	ns := nstest.New(t, "host")
	var theirs net.Listener
	ns.Nobody(t, func() { theirs, _ = net.Listen("unix", "@scaffold-testd") })
	if theirs == nil {
		t.Fatal("nobody could not bind the name")
	}
	defer theirs.Close()
	ns.Do(func() {
		alone, err := api.Alone("testd")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := api.Alone("testd"); !errors.Is(err, api.ErrRunning) {
			t.Errorf("a second daemon: %v", err)
		}
		alone.Close()
		if alone, err = api.Alone("testd"); err != nil {
			t.Fatalf("after its end: %v", err)
		}
		alone.Close()
	})
}

// A daemon of before has nothing but that name: it and one of this version keep each other out.
func TestADaemonOfBeforeIsSeen(t *testing.T) {
	ns := nstest.New(t, "host")
	ns.Do(func() {
		before, err := net.Listen("unix", "@scaffold-testd")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := api.Alone("testd"); !errors.Is(err, api.ErrRunning) {
			t.Errorf("beside a daemon of before: %v", err)
		}
		before.Close()
		alone, err := api.Alone("testd")
		if err != nil {
			t.Fatal(err)
		}
		defer alone.Close()
		if before, err = net.Listen("unix", "@scaffold-testd"); err == nil {
			before.Close()
			t.Error("a daemon of before would start beside this one")
		}
	})
}
