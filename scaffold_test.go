package scaffold

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestAServiceIsServedAndReachedByName(t *testing.T) {
	h := newFake(t).host
	l, err := h.Listen(t.Context(), "tcp", "web:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c, err := h.Dial(t.Context(), "tcp", "web:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pc, err := h.ListenPacket(t.Context(), "udp", "web:0")
	if err != nil {
		t.Fatal(err)
	}
	pc.Close()
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	h := newFake(t).host
	if _, err := h.Dial(t.Context(), "tcp", "nobody:80"); !errors.Is(err, ErrUnknownService) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("unknown service: %v", err)
	}
	if _, err := h.Dial(t.Context(), "sctp", "web:80"); err == nil || !strings.Contains(err.Error(), "sctp") {
		t.Errorf("unknown network: %v", err)
	}
	if _, err := h.Dial(t.Context(), "tcp", "web"); err == nil || !strings.Contains(err.Error(), "port") {
		t.Errorf("no port: %v", err)
	}
	away := &Host{Daemon: "unix:/nowhere/hostd.sock"}
	if _, err := away.Listen(t.Context(), "tcp", "web:80"); !errors.Is(err, ErrNoDaemon) || !strings.Contains(err.Error(), "/nowhere/hostd.sock") {
		t.Errorf("no daemon: %v", err)
	}
}

func TestAnOlderDaemonIsNamedAsTheCause(t *testing.T) {
	f := newFake(t)
	f.old = true
	lc := ListenConfig{Host: f.host, CanResume: true}
	if _, err := lc.Listen(t.Context(), "tcp", "web:0"); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), f.host.Daemon) {
		t.Errorf("Listen at a daemon without Serve: %v", err)
	}
	_, c := pair(t)
	if _, err := f.host.Identify(t.Context(), c); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Identify at a daemon without it: %v", err)
	}
}
