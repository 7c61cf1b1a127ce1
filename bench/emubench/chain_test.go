package emubench

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// testEngine is this test binary as an engine.
var testEngine = Child{"/proc/self/exe", engineArg}

func TestAStringLosesNothing(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, mode := range []Mode{LPM, Class} {
		for _, links := range []emu.Params{{}, stringLinks} {
			s := String{Routers: 3, Frame: smallFrame, Mode: mode, Links: links}
			v, err := s.Run(t.Context(), 1024)
			if err != nil || v.Hops != 3*1024 {
				t.Errorf("%s, %v: %d hops, %v", mode, links, v.Hops, err)
			}
		}
	}
}

func TestPlacementsAreThoseOfThePaper(t *testing.T) {
	for _, s := range []String{{Routers: 4, Shards: cut(4)}, {Routers: 4, Shards: alternating(4)}} {
		s.Frame, s.Mode, s.Links = smallFrame, Class, stringLinks
		n, source, sink, err := s.build()
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		if err := s.send(n, source, sink, 1000); err != nil {
			t.Fatal(err)
		}
		for i, r := range n.Routers()[2:] {
			if got := r.Shard(); got != s.Shards[i] {
				t.Errorf("router %d of %v is in shard %d", i, s.Shards, got)
			}
		}
	}
}

// sendAll sends datagrams one by one and returns when all have come.
func sendAll(t *testing.T, c *Chain, count int) {
	t.Helper()
	in, err := c.openSink()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(in)
	out, err := c.openFlood()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(out)
	b := make([]byte, 100)
	for i := range count {
		if err := unix.Send(out, b[:12], 0); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(nstest.Deadline); ; {
			n, _, err := unix.Recvfrom(in, b, 0)
			if err == nil && n == 12 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: datagram %d of %d did not come: %v", c.Kind, i, count, err)
			}
		}
	}
}

func TestChainsOfAllKindsCarryTheSameTraffic(t *testing.T) {
	nstest.Root(t)
	ours, err := newOurChain(t.Context(), testEngine, 3, Class, both(hopLinks))
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	kernel, err := newKernelChain(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	for _, c := range []*Chain{ours, kernel} {
		before := counted(t, c)
		sendAll(t, c, 1000)
		after := counted(t, c)
		for i := range after {
			if n := after[i] - before[i]; n < 1000 {
				t.Errorf("%s: link %d carried %d of 1000 packets", c.Kind, i, n)
			}
		}
		flow, err := Load{Skip: time.Millisecond, Count: 10 * time.Millisecond}.Through(t.Context(), c)
		if err != nil || flow.Bytes == 0 {
			t.Errorf("%s: %d bytes of a stream, %v", c.Kind, flow.Bytes, err)
		}
	}
}

// counted is what the links of our chain have carried towards the receiver.
func counted(t *testing.T, c *Chain) (all []uint64) {
	t.Helper()
	if c.engine == nil {
		return nil
	}
	s, err := c.engine.State()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Links) != c.Routers+1 || len(s.Routers) != c.Routers {
		t.Fatalf("%d links, %d routers", len(s.Links), len(s.Routers))
	}
	for i, l := range s.Links {
		if i > 0 && l[0].Counters.Packets > s.Links[i-1][0].Counters.Passed {
			t.Errorf("link %d carried more than the one before passed", i)
		}
		all = append(all, l[0].Counters.Packets)
	}
	return all
}

func TestAnEngineThatCannotStartSaysWhy(t *testing.T) {
	nstest.Root(t)
	c, err := newOurChain(t.Context(), Child{"/bin/sh", "-c", "echo nothing to see here >&2; exit 1"}, 1, LPM, both(emu.Params{}))
	if err == nil {
		c.Close()
		t.Fatal("a shell was an engine")
	}
	t.Log(err)
}

func TestAWindowSkipsItsBeginning(t *testing.T) {
	w := window{skip: time.Second, count: 2 * time.Second}
	at, steps := time.Now(), 0
	for !w.add(at.Add(time.Duration(steps)*500*time.Millisecond), 10, 120) {
		steps++
	}
	if want := (Flow{40, 480, 2 * time.Second}); w.sum != want || steps != 5 {
		t.Errorf("%+v after %d steps, want %+v after 5", w.sum, steps, want)
	}
}
