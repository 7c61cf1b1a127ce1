package scaffold

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func TestAConnectionIsIdentified(t *testing.T) {
	f := newFake(t)
	_, c := pair(t)
	if _, err := f.host.Identify(t.Context(), c); !errors.Is(err, ErrNoFlow) {
		t.Errorf("a connection that is none of a service: %v, want ErrNoFlow", err)
	}
	f.flow = &apiv1.FlowIdentity{Stable: "fd5d::1", Resumed: true, Received: 40, Sent: 1 << 40, Service: "web"}
	got, err := f.host.Identify(t.Context(), c)
	want := Identity{netip.MustParseAddr("fd5d::1"), true, 40, 1 << 40, "web"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	f.flow = &apiv1.FlowIdentity{Stable: "nonsense"}
	if _, err := f.host.Identify(t.Context(), c); err == nil {
		t.Error("a daemon that answers nonsense is believed")
	}
}

func TestCloseFailTellsTheDaemonAndClosesWithoutAnEnd(t *testing.T) {
	f := newFake(t)
	client, c := pair(t)
	if err := f.host.CloseFail(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if len(f.fails) != 1 || f.fails[0].Local != c.LocalAddr().String() || f.fails[0].Peer != client.LocalAddr().String() || f.fails[0].Proto != "tcp" {
		t.Errorf("the daemon was asked %v", f.fails)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reads %v, want ECONNRESET: an end would make half an answer look whole", err)
	}
}

func TestWithoutDaemonCloseFailResets(t *testing.T) {
	away := &Host{Daemon: "unix:/nowhere/hostd.sock"}
	client, c := pair(t)
	if err := away.CloseFail(t.Context(), c); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("CloseFail: %v, want ErrNoDaemon", err)
	}
	if _, err := client.Read(make([]byte, 1)); err == io.EOF || err == nil {
		t.Errorf("the client reads %v, want a reset", err)
	}
}

func TestFailAllNamesTheListener(t *testing.T) {
	f := newFake(t)
	l, err := f.host.Listen(t.Context(), "tcp", "web:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n, err := f.host.FailAll(t.Context(), l.Addr())
	if n != 1 || err != nil {
		t.Errorf("FailAll: %d, %v", n, err)
	}
	if r := f.fails[0]; r.Service != "::1" || r.Port == 0 || r.Local != "" || r.Peer != "" {
		t.Errorf("the daemon was asked to fail %v", r)
	}
}

func TestAMoveNamesTheFlowAndItsRefusalIsTold(t *testing.T) {
	f := newFake(t)
	_, c := pair(t)
	f.flow = &apiv1.FlowIdentity{Stable: "fd5d::1"}
	if err := f.host.Move(t.Context(), c, "eth1"); err != nil {
		t.Error(err)
	}
	if len(f.moves) != 1 || f.moves[0].Flow != "fd5d::1" || f.moves[0].To != "eth1" {
		t.Errorf("the daemon was asked to move %v", f.moves)
	}
	for _, uplink := range []string{"down", "late"} {
		if err := f.host.Move(t.Context(), c, uplink); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), uplink) {
			t.Errorf("to %s: %v, want ErrRefused", uplink, err)
		}
	}
}
