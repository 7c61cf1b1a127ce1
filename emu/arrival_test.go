package emu

import (
	"fmt"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// whileNobodyReads has a datagram sent from a to b while the network stands still. It was sent by sent, and the network
// went on after on.
func (r *rig) whileNobodyReads(t *testing.T) (sent, on time.Duration) {
	t.Helper()
	out, err := r.a.Dial("udp6", "[fd00::2]:9")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	stands, release, went := make(chan bool), make(chan bool), make(chan error, 1)
	go func() { went <- r.edges[0].Do(func() { close(stands); <-release }) }()
	<-stands
	fmt.Fprint(out, "hello") // the link tells
	sent = r.Now()
	for r.Now() < sent+time.Millisecond { // so that what is compared differs
	}
	on = r.Now()
	close(release)
	if err := <-went; err != nil {
		t.Fatal(err)
	}
	return sent, on
}

func TestADelayBeginsAtTheInterface(t *testing.T) {
	const delay = time.Minute
	r := newRig(t, Params{Delay: delay})
	r.a.Run(t, "ip", "neigh", "replace", "fd00::2", "lladdr", "02:00:00:00:00:01", "dev", "eth0")
	for range 5 {
		var before, now uint64
		r.edges[0].Do(func() { before = r.links[0].ways[0].line.count.Packets }) // it runs
		sent, _ := r.whileNobodyReads(t)
		var last time.Duration
		nstest.Wait(t, "the counters of the link", func() error {
			r.edges[0].Do(func() { // it runs
				line := r.links[0].ways[0].line
				now, last = line.count.Packets, line.last
			})
			if now == before {
				return fmt.Errorf("no packet more than %d", now)
			}
			return nil
		})
		if now > before+1 {
			continue // the kernel said something by itself, perhaps later
		}
		if last > sent+delay {
			t.Errorf("due at %v, was sent by %v over a link of %v", last, sent, delay)
		}
		return
	}
	t.Error("the packet never came alone")
}

func TestWhoWaitsAtAnInterfaceIsLate(t *testing.T) {
	for name, p := range map[string]Params{"nothing to emulate": {}, "a delay": {Delay: time.Microsecond}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, p)
			sent, on := r.whileNobodyReads(t)
			nstest.Wait(t, "the counters of the link", func() error {
				m, err := r.links[0].Measure(false)
				if waited := on - sent; err == nil && m[0].Lateness.most < waited-p.Delay {
					err = fmt.Errorf("the latest of %d packets was %v late; one waited %v", m[0].Late.Packets, m[0].Late.Max, waited)
				}
				return err
			})
		})
	}
}

func TestCountingBeginsAnewWithoutAPause(t *testing.T) {
	r := newRig(t, Params{Rate: 1e6, Queue: 1 << 20})
	out, err := r.a.Dial("udp6", "[fd00::2]:9")
	if err != nil {
		t.Fatal(err)
	}
	for range 400 { // three seconds of the link
		out.Write(make([]byte, 1000)) // the link tells
	}
	measure := func(anew bool) Measure {
		m, err := r.links[0].Measure(anew)
		if err != nil {
			t.Fatal(err)
		}
		return m[0]
	}
	nstest.Wait(t, "the counters of the link", func() error {
		if n := measure(false).Rate.Windows; n == 0 {
			return fmt.Errorf("no measurement of the rate")
		}
		return nil
	})
	before := measure(true)
	after := measure(false)
	if after.SetFor >= before.SetFor || after.Before.Packets != before.Counters.Packets || after.Lateness.Count() > before.Lateness.Count() || after.Missing != 0 {
		t.Errorf("%+v\nand then %+v", before.LineStats, after.LineStats)
	}
	nstest.Wait(t, "the counters of the link, which never idles", func() error {
		if n := measure(false).Rate.Windows; n == 0 {
			return fmt.Errorf("no measurement of the rate after counting began anew")
		}
		return nil
	})
}

func TestLatenessTakesNoMemory(t *testing.T) {
	var l Lateness
	if n := testing.AllocsPerRun(100, func() {
		for d := time.Duration(1); d < time.Hour; d *= 2 {
			l.Add(d, 3)
		}
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
	if l.Beyond(0) != l.Count() || l.Beyond(time.Hour) != 0 || l.Beyond(time.Microsecond) == 0 {
		t.Errorf("%d beyond 0, %d beyond an hour, of %d", l.Beyond(0), l.Beyond(time.Hour), l.Count())
	}
}

func TestWhoWaitsAtATakenInterfaceIsLate(t *testing.T) {
	a, b := nstest.New(t, "a"), nstest.New(t, "b")
	nstest.Veth(t, a, "out", b, "in")
	n := New(Options{})
	t.Cleanup(func() { n.Close() })
	netns := fmt.Sprintf("/proc/self/fd/%d", b.Fd())
	in, err := n.Edge(End{Netns: netns, Dev: "in", Taken: true})
	if err != nil {
		t.Fatal(err)
	}
	link, err := n.Link(in, (&rig{Net: n}).edge(t, b), [2]Params{})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	a.Up(t, "out")
	b.Up(t, "in")
	frames := a.Frames(t, "out")
	stands, release, went := make(chan bool), make(chan bool), make(chan error, 1)
	go func() { went <- in.Do(func() { close(stands); <-release }) }()
	<-stands
	frames.Send(t, make([]byte, 100))
	sent := n.Now()
	for n.Now() < sent+time.Millisecond { // so that what is compared differs
	}
	waited := n.Now() - sent
	close(release)
	if err := <-went; err != nil {
		t.Fatal(err)
	}
	nstest.Wait(t, "the counters of the link", func() error {
		m, err := link.Measure(false)
		if err == nil && m[0].Lateness.most < waited {
			err = fmt.Errorf("the latest of %d packets was %v late; one waited %v", m[0].Late.Packets, m[0].Late.Max, waited)
		}
		return err
	})
}
