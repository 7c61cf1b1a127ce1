package lab

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// slow is a lab with one emulated link.
const slow = `
name: NAME
nodes:
  ctl: controller
  r1: {kind: router, service: true}
  c1: host
links:
  - {ends: [c1, r1], delay: 20ms, loss: 1%, seed: 7}
`

func slowLab(t *testing.T, name string) *Lab {
	t.Helper()
	nstest.Root(t)
	f, err := file.Parse("slow.yaml", []byte(strings.Replace(slow, "NAME", nstest.LabNamed(name), 1)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Up(t.Context(), f, Options{stub: []string{"sleep", "1000"}, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Down(context.Background(), f.Name, l.opt) })
	return l
}

// toR1 are the present statistics from c1 to r1.
func toR1(t *testing.T, l *Lab) emu.LineStats {
	t.Helper()
	links, err := l.engine.Links()
	if err != nil {
		t.Fatal(err)
	}
	return links[0].Lines[0]
}

// probe is a pair of sockets at the ends of the link.
type probe struct {
	to   *net.UDPConn // at c1
	from net.PacketConn
}

func newProbe(t *testing.T, l *Lab) probe {
	t.Helper()
	c1, r1 := l.plan.Node("c1"), l.plan.Node("r1")
	near := nstest.Enter(t, "c1", plan.NetnsPath(c1.Netns))
	far := nstest.Enter(t, "r1", plan.NetnsPath(r1.Netns))
	p := probe{from: far.ListenPacket(t, "udp6", "[::]:7")}
	index := near.Index(t, c1.Ports[0].Dev)
	c, err := near.Dial("udp6", netip.AddrPortFrom(r1.LinkLocal.WithZone(fmt.Sprint(index)), 7).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	p.to = c.(*net.UDPConn)
	return p
}

// probesBegan is what times in probes count from. By the wall clock datagrams came 150 us before their delay was over:
// it is set back in small steps on some machines. time.Since reads the monotonic clock, as the engine does.
var probesBegan = time.Now()

func (p probe) send(n uint64) {
	b := binary.BigEndian.AppendUint64(nil, n)
	p.to.Write(binary.BigEndian.AppendUint64(b, uint64(time.Since(probesBegan)))) // a lost packet is counted
}

// read returns the number of the next datagram and how long it was on its way.
func (p probe) read(t *testing.T, within time.Duration) (n uint64, took time.Duration, ok bool) {
	t.Helper()
	b := make([]byte, 64)
	p.from.SetReadDeadline(time.Now().Add(within)) // the socket is open
	if size, _, err := p.from.ReadFrom(b); err != nil || size != 16 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(b), time.Since(probesBegan) - time.Duration(binary.BigEndian.Uint64(b[8:])), true
}

// meet sends markers with this number until one arrives, and returns how many datagrams of number 0
// arrived before it. Order is kept: whatever was sent before has arrived or is lost.
func (p probe) meet(t *testing.T, marker uint64) (before int) {
	t.Helper()
	for end := time.Now().Add(nstest.Deadline); time.Now().Before(end); {
		p.send(marker)
		for {
			n, took, ok := p.read(t, 100*time.Millisecond)
			if !ok {
				break
			}
			// The kernel notes when a frame came by a clock that is a little off (ktime_get_mono_fast_ns).
			if took < 20*time.Millisecond-50*time.Microsecond {
				t.Errorf("datagram %d took %v, less than the delay", n, took)
			}
			if n == marker {
				return before
			}
			if n == 0 { // not a late copy of an earlier marker
				before++
			}
		}
	}
	t.Fatalf("no marker arrived; see the engine's log and `scaffold lab link`")
	return 0
}

func TestAnEmulatedLinkLosesWhatItsSeedSays(t *testing.T) {
	l := slowLab(t, "lossy")
	p := newProbe(t, l)
	p.meet(t, 1) // neighbours know each other
	start := toR1(t, l).Counters
	const probes = 2000
	arrived := 0
	for i := range probes {
		p.send(0)
		if i%100 == 99 { // within the receiver's buffer
			before := p.meet(t, uint64(2+i))
			arrived += before
		}
	}
	end := toR1(t, l)
	lost := int(end.Counters.Lost - start.Lost)
	others := int(end.Counters.Packets-start.Packets) - probes // markers, neighbour discovery, what the kernel says by itself
	if missing := probes - arrived; missing > lost || missing < lost-others {
		t.Errorf("%d of %d datagrams are missing; the link lost %d, of others there were %d", missing, probes, lost, others)
	}
	if want := end.Params.Predict(end.Counters.Packets); end.Counters.Lost != want {
		t.Errorf("lost %d of %d packets, the seed says %d", end.Counters.Lost, end.Counters.Packets, want)
	}
}

func TestALinkChangesWhileItRuns(t *testing.T) {
	l := slowLab(t, "change")
	p := newProbe(t, l)
	p.meet(t, 1)
	do := func(text string) { t.Helper(); act(t, l, text) }
	do("link r1 c1 delay 30ms loss 0%")
	do("link c1->r1 loss 100%")
	if got := toR1(t, l).Params.String(); got != "delay 30ms loss 100%" {
		t.Errorf("c1->r1: %s", got)
	}
	p.send(0)
	nstest.Wait(t, "the link's counters", func() error {
		if c := toR1(t, l).Counters; c.Lost == 0 {
			return fmt.Errorf("nothing is lost: %+v", c)
		}
		return nil
	})
	do("link c1->r1 loss 0%")
	if before := p.meet(t, 3); before != 0 {
		t.Error("the datagram arrived that was to be lost")
	}
	for _, verb := range []string{"cut", "unplug"} {
		do(verb + " c1 r1")
		s, err := l.Status()
		if want := map[string]string{"cut": "cut", "unplug": "unplugged"}[verb]; err != nil || s.Links[0].State != want {
			t.Errorf("after %s: %+v, %v", verb, s.Links[0], err)
		}
		do("heal c1 r1")
		p.meet(t, 4)
	}
	a, _ := file.ParseAction("link c1 r1 delay 0s jitter 1ms")
	if err := l.Do(t.Context(), a); err == nil || !strings.Contains(err.Error(), "jitter") {
		t.Errorf("%s: %v", a, err)
	}
}

func TestALabWhoseEngineDiedGoesDown(t *testing.T) {
	nstest.Root(t)
	before := machine(t)
	l := slowLab(t, "dead")
	if err := l.procs.Group(file.ManagementNode, engine.Name).Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	nstest.Wait(t, "the interfaces of the link", func() error {
		s, err := l.Status()
		if err == nil && s.Links[0].State != "down" {
			err = fmt.Errorf("the link is %s", s.Links[0].State)
		}
		return err
	})
	if _, err := l.engine.Links(); err == nil {
		t.Error("a dead engine answers")
	}
	if err := Down(t.Context(), l.File.Name, l.opt); err != nil {
		t.Fatal(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
