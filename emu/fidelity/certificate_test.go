package fidelity

import (
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
	s, err := link.Stats()
	if err != nil {
		t.Fatal(err)
	}
	shards, err := n.Shards()
	if err != nil {
		t.Fatal(err)
	}
	return Direction{From: "a", To: "b", Stats: s[0]}, shards
}

var asked = emu.Params{Rate: 10e6, Delay: 5 * time.Millisecond, Loss: 0.01, BurstLoss: 0.02, Seed: 3}

func TestVirtualTimeIsFaithful(t *testing.T) {
	d, shards := saturated(t, asked)
	c := Judge([]Direction{d}, shards, Usual)
	if !c.Faithful {
		t.Errorf("%v; %+v", c.Reasons, c.Links)
	}
	if row := c.Links[0]; row.Rate.Windows < 50 || row.Packets < 10_000 || row.Overflow == 0 || row.Late.Max != 0 {
		t.Errorf("%+v", row)
	}
}

func TestEachFaultIsNamed(t *testing.T) {
	for want, spoil := range map[string]func(*Direction, []emu.ShardStats){
		"left 1ms late or more, bound 300": func(d *Direction, _ []emu.ShardStats) { d.Stats.Late = emu.LateStats{Parts: 10, P99: time.Millisecond} },
		"delivered 9 Mbit/s where":         func(d *Direction, _ []emu.ShardStats) { d.Stats.Rate.Mean = 9e6 },
		"where 2.98 % were asked for":      func(d *Direction, _ []emu.ShardStats) { d.Stats.Counters.Lost += 400 },
		"3 packets lost because":           func(d *Direction, _ []emu.ShardStats) { d.Stats.Starved = 3 },
		"5 frames lost at the interface":   func(d *Direction, _ []emu.ShardStats) { d.Dropped = 5 },
		"interfaces waited 2ms": func(_ *Direction, s []emu.ShardStats) {
			s[0].Edges, s[0].Turns = 1, emu.LateStats{Parts: 1, P99: 2 * time.Millisecond}
		},
	} {
		d, shards := saturated(t, asked)
		spoil(&d, shards)
		c := Judge([]Direction{d}, shards, Usual)
		if c.Faithful || !strings.Contains(strings.Join(c.Reasons, "\n"), want) {
			t.Errorf("want %q: %q", want, c.Reasons)
		}
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
	s, err := link.Stats()
	if err != nil {
		t.Fatal(err)
	}
	c := Judge([]Direction{{From: "a", To: "b", Stats: s[0]}}, nil, Usual)
	if !c.Faithful || c.Links[0].Seconds != 10 {
		t.Errorf("%v; %+v", c.Reasons, c.Links[0])
	}
}
