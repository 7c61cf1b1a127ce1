package fidelity

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/traffic"
)

// saturated runs a link with more than it can carry for ten seconds of virtual time.
func saturated(t *testing.T, p emu.Params) (Direction, []emu.ShardStats) {
	t.Helper()
	n := emu.New(emu.Options{Virtual: true})
	t.Cleanup(func() { n.Close() })
	a := n.Router("a", &traffic.Source{From: netip.MustParseAddr("fd00::1"), To: []netip.Addr{netip.MustParseAddr("fd00::2")}, Size: 1000, Gap: 500 * time.Microsecond})
	link, err := n.Link(a, n.Router("b", &traffic.Sink{}), [2]emu.Params{p, p})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	m, err := link.Measure(false)
	if err != nil {
		t.Fatal(err)
	}
	shards, err := n.Shards()
	if err != nil {
		t.Fatal(err)
	}
	return Direction{From: "a", To: "b", Measure: m[0]}, shards
}

var asked = emu.Params{Rate: 10e6, Delay: 5 * time.Millisecond, Loss: 0.01, BurstLoss: 0.02, Seed: 3}

func TestVirtualTimeIsFaithful(t *testing.T) {
	d, shards := saturated(t, asked)
	c := Judge(time.Time{}, []Direction{d}, shards, Usual)
	if !c.Faithful {
		t.Errorf("%v; %+v", c.Reasons, c.Links)
	}
	if row := c.Links[0]; row.Rate.Windows < 50 || row.Packets < 10_000 || row.Overflow == 0 || row.Late.Max != 0 {
		t.Errorf("%+v", row)
	}
}

func TestEachFaultIsNamed(t *testing.T) {
	for want, spoil := range map[string]func(*Direction){
		"a->b: 1000 of": func(d *Direction) { d.Lateness.Add(time.Millisecond, 1000) },
		"left more than 300µs late; one in a hundred may; the latest 1ms": func(d *Direction) { d.Lateness.Add(time.Millisecond, 1000) },
		"left more than 1ms late":        func(d *Direction) { d.Entry = true; d.Lateness.Add(2*time.Millisecond, 1000) },
		"how long frames wait":           func(d *Direction) { d.Blind = errors.New("no programs for you") },
		"delivered 9 Mbit/s where":       func(d *Direction) { d.Rate.Mean = 9e6 },
		"where 2.98 % were asked for":    func(d *Direction) { d.Counters.Lost += 400 },
		"3 packets lost because":         func(d *Direction) { d.Missing = 3 },
		"5 frames lost at the interface": func(d *Direction) { d.Dropped = 5 },
	} {
		d, shards := saturated(t, asked)
		spoil(&d)
		c := Judge(time.Time{}, []Direction{d}, shards, Usual)
		if c.Faithful || !strings.Contains(strings.Join(c.Reasons, "\n"), want) {
			t.Errorf("want %q: %q", want, c.Reasons)
		}
	}
}

// directions are quiet ones with as many packets each, of which some are late.
func directions(packets, late uint64, n int) (all []Direction) {
	for range n {
		d := Direction{From: "a", To: "b"}
		d.Lateness.Add(time.Microsecond, packets-late)
		d.Lateness.Add(time.Second, late)
		all = append(all, d)
	}
	return all
}

func TestAFewPacketsAreNoPercentile(t *testing.T) {
	lab := append(directions(100_000, 50, 1), directions(60, 2, 100)...)
	if c := Judge(time.Time{}, lab, nil, Usual); !c.Faithful {
		t.Errorf("two late packets of 60 here and there: %q", c.Reasons)
	}
	if c := Judge(time.Time{}, append(lab, directions(60, 20, 1)...), nil, Usual); c.Faithful {
		t.Error("twenty late packets of 60 on one link are taken for chance")
	}
	if c := Judge(time.Time{}, directions(60, 2, 100), nil, Usual); c.Faithful {
		t.Error("two late packets of 60 on each of a hundred links are taken for chance")
	}
}

// Emulators whose packets are late with a probability are judged by what is drawn, in a fixed order.
func TestChanceAloneIsNoFault(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	judge := func(probability float64, packets, n int) (unfaithful int) {
		var all []Direction
		for range n {
			late := 0
			for range packets {
				if random.Float64() < probability {
					late++
				}
			}
			all = append(all, directions(uint64(packets), uint64(late), 1)...)
		}
		for _, r := range Judge(time.Time{}, all, nil, Usual).Links {
			unfaithful += min(1, len(r.Faults))
		}
		return unfaithful
	}
	for _, packets := range []int{20, 48, 240, 5000} {
		if bad := judge(0.01, packets, 1478); bad > 0 {
			t.Errorf("%d of 1478 directions with %d packets, one in a hundred late, are called unfaithful", bad, packets)
		}
	}
	if bad := judge(0.1, 1000, 20); bad < 20 {
		t.Errorf("%d of 20 directions whose engine stands still for a tenth of the time are found out", bad)
	}
}

func TestWhatFailsComesFirst(t *testing.T) {
	lab := append(directions(1000, 0, 50), directions(1000, 500, 1)...)
	lab[50].From = "late"
	if c := Judge(time.Time{}, lab, nil, Usual); c.Links[0].From != "late" || len(c.Links[0].Faults) != 1 || len(c.Links) != 51 {
		t.Errorf("%+v", c.Links[0])
	}
}

func TestWhatWasBeforeAChangeDoesNotCount(t *testing.T) {
	n := emu.New(emu.Options{Virtual: true})
	t.Cleanup(func() { n.Close() })
	a := n.Router("a", &traffic.Source{From: netip.MustParseAddr("fd00::1"), To: []netip.Addr{netip.MustParseAddr("fd00::2")}, Size: 1000, Gap: 500 * time.Microsecond})
	link, err := n.Link(a, n.Router("b", &traffic.Sink{}), [2]emu.Params{{Loss: 0.5, Rate: 1e6, Delay: time.Second}, {}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := link.Set([2]emu.Params{asked, asked}); err != nil {
		t.Fatal(err)
	}
	if err := n.Run(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	m, err := link.Measure(true)
	if err != nil {
		t.Fatal(err)
	}
	c := Judge(time.Time{}, []Direction{{From: "a", To: "b", Measure: m[0]}}, nil, Usual)
	if !c.Faithful || c.Links[0].Seconds != 10 {
		t.Errorf("%v; %+v", c.Reasons, c.Links[0])
	}
	if m, err = link.Measure(false); err != nil {
		t.Fatal(err)
	}
	c = Judge(time.Time{}, []Direction{{From: "a", To: "b", Measure: m[0]}}, nil, Usual)
	if row := c.Links[0]; row.Seconds != 0 || row.Packets != 0 || row.Late.Packets != 0 || row.Rate.Windows != 0 || row.Loss != 0 {
		t.Errorf("counted anew: %+v", row)
	}
}
