package mrt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/lab/frr"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// daemon runs a bgpd that waits for a replay from a host beside it, and gives what its router learns.
func daemon(t *testing.T) (host *nstest.NS, learnt chan frr.Change) {
	t.Helper()
	nstest.Root(t)
	if _, err := frr.Find(); err != nil {
		nstest.Program(t, "/usr/lib/frr/zebra", "frr")
	}
	r, host := nstest.New(t, "r"), nstest.New(t, "host")
	nstest.Veth(t, r, "e0", host, "e0")
	r.Addr(t, "e0", "fd00:1::1/64")
	host.Addr(t, "e0", "fd00:1::2/64")
	c := frr.Config{
		Name: "r", Number: 1, BGP: &frr.BGP{AS: 65001},
		Ports: []frr.Port{{Name: "e0", Peer: &frr.Peer{Addr: netip.MustParseAddr("fd00:1::2"), Wait: true}}},
	}
	files, err := c.Files()
	if err != nil {
		t.Fatal(err)
	}
	netns := fmt.Sprintf("/proc/self/fd/%d", r.Fd())
	learnt = make(chan frr.Change, 1000)
	feed, err := frr.Listen(netns, func(changes []frr.Change) {
		for _, c := range changes {
			learnt <- c
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { feed.Close() })
	dir := t.TempDir()
	os.Chmod(filepath.Dir(dir), 0o755) // FRR's user is to reach it
	processes, err := frr.Prepare(frr.Spec{Name: "r", Dir: filepath.Join(dir, "frr"), Files: files})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		r.StartUntil(t, p.Ready, append(p.Argv, "--log", "stdout")...)
	}
	waitFor(t, learnt, "fd00:1::/64", frr.Unicast) // from here on the feed tells what happens
	return host, learnt
}

// session connects once the daemon has read its configuration.
func session(t *testing.T, host *nstest.NS) *Session {
	t.Helper()
	speaker := Speaker{AS: 65002, ID: netip.MustParseAddr("10.0.0.2"), NextHop4: netip.MustParseAddr("fd00:1::2"), NextHop6: netip.MustParseAddr("fd00:1::2")}
	var s *Session
	nstest.Wait(t, "vtysh: show bgp summary", func() error {
		conn, err := host.Dial("tcp", "[fd00:1::1]:179")
		if err != nil {
			return err
		}
		s, err = Open(conn, speaker)
		return err
	})
	t.Cleanup(func() { s.Close() })
	return s
}

func waitFor(t *testing.T, learnt chan frr.Change, prefix string, kind frr.Kind) frr.Change {
	t.Helper()
	for {
		c := nstest.Receive(t, "vtysh: show bgp, for "+prefix+" "+kind.String(), learnt)
		if c.Prefix == netip.MustParsePrefix(prefix) && c.Kind == kind {
			return c
		}
	}
}

func TestARecordingIsReplayedIntoABGPDaemon(t *testing.T) {
	host, learnt := daemon(t)
	s := session(t, host)
	p := &tape{t: t}
	p.table("2001:db8:1::/48")
	p.update(0, another, announce("2001:db8:9::/48", 65011)) // of a peer that is not asked for
	p.update(time.Second, peer, announce("2001:db8:2::/48", 65010))
	p.update(time.Second, peer, announce("203.0.113.0/24", 65010, 65020))
	replay(t, s, p, 3, 2)
	for _, prefix := range []string{"2001:db8:1::/48", "2001:db8:2::/48", "203.0.113.0/24"} {
		if c := waitFor(t, learnt, prefix, frr.Unicast); len(c.Via) != 1 || c.Protocol != frr.FromBGP || !c.Via[0].Gateway.Is6() {
			t.Errorf("%v by %d", c, c.Protocol)
		}
	}
	select { // the daemon holds for 3 s
	case <-s.Done():
		t.Fatal(s.Err())
	case <-time.After(4 * time.Second):
	}
	p = &tape{t: t}
	p.update(2*time.Second, peer, withdraw("2001:db8:2::/48"))
	p.update(3*time.Second, peer, withdraw("203.0.113.0/24"))
	replay(t, s, p, 2, 0)
	waitFor(t, learnt, "2001:db8:2::/48", frr.Gone)
	waitFor(t, learnt, "203.0.113.0/24", frr.Gone)
	s.Close()
	waitFor(t, learnt, "2001:db8:1::/48", frr.Gone)
}

// replay says a tape again and compares how many updates it said and left.
func replay(t *testing.T, s *Session, p *tape, updates, left int) {
	t.Helper()
	said, err := s.Replay(context.Background(), bytes.NewReader(p.bytes), Options{Speed: 2, Peer: peer})
	if err != nil || said.Updates != updates || said.Left != left || said.Bad != 0 {
		t.Fatalf("said %+v, %v; want %d updates, %d left", said, err, updates, left)
	}
}

func TestUpdatesKeepTheirDistances(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := pace{speed: 4}
	if _, err := p.wait(ctx, nil, began); err != nil {
		t.Fatal(err)
	}
	if _, err := p.wait(ctx, nil, began.Add(200*time.Millisecond)); err != nil || time.Since(p.start) < 50*time.Millisecond {
		t.Errorf("%v after %v, want 50 ms at least", err, time.Since(p.start))
	}
	if _, err := p.wait(ctx, nil, began); err != nil {
		t.Error("a record that comes late by the clock is said at once:", err)
	}
	cancel()
	if _, err := p.wait(ctx, nil, began.Add(time.Hour)); err == nil {
		t.Error("a replay that is given up goes on")
	}
}

func TestASessionThatCannotBeIsRefused(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	if _, err := Open(a, Speaker{AS: 1, ID: peer}); err == nil || !strings.Contains(err.Error(), "needs a next hop") {
		t.Error(err)
	}
}

func TestADaemonThatRefusesIsQuoted(t *testing.T) {
	host, _ := daemon(t)
	session(t, host).Close()
	nstest.Wait(t, "the log of bgpd, which takes a moment to be ready for the next session", func() error {
		conn, err := host.Dial("tcp", "[fd00:1::1]:179")
		if err != nil {
			return err
		}
		_, err = Open(conn, Speaker{AS: 65001, ID: peer, NextHop6: netip.MustParseAddr("fd00:1::2")}) // the daemon's own number
		switch {
		case err == nil:
			return errors.New("the daemon took its own number")
		case strings.Contains(err.Error(), "notification 2, 2"):
			return nil
		}
		return err
	})
}
