package history

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

const (
	placeA = sid.Locator(0xfd5d000000010101)
	placeB = sid.Locator(0xfd5d000000010201)
)

var (
	space   = sid.DefaultSpace()
	webAddr = space.ServiceAddr(sid.ServiceID{SS: 1, Suffix: 0x00c0ffee00c0ffee})
)

func numbered(n int) (session.Key, host.Flow) {
	stable := placeA.Addr(1<<63 | uint64(n))
	f := host.Flow{ID: sid.NewSocketID(uint64(n)), Role: host.Client, Locator: placeA, Stable: stable, State: host.BoundFlow,
		Tuple:    host.Tuple{Local: netip.AddrPortFrom(space.Identity(1), uint16(n)), Remote: netip.AddrPortFrom(webAddr, 80), Proto: sid.TCP},
		WirePeer: netip.AddrPortFrom(placeB.Addr(1<<63), 80)}
	return session.Key{Stable: stable, Role: session.Client}, f
}

func TestAHistoryKeepsItsBeginningAndItsNewestEvents(t *testing.T) {
	s := New()
	k, f := numbered(1)
	s.Begin(k, f)
	for i := range 100 {
		s.Add(k, Event{At: time.Unix(int64(i), 0), Kind: "move", Text: fmt.Sprint(i)})
	}
	c := s.Find(f.ID.String()).Events
	if len(c) != mostEvents || c[0].Kind != "begin" || c[1].Text != "69" || c[mostEvents-1].Text != "99" {
		t.Errorf("%d events, from %+v and %+v to %+v", len(c), c[0], c[1], c[len(c)-1])
	}
}

func TestOldHistoriesMakeRoom(t *testing.T) {
	s := New()
	for i := range mostFlows + 10 {
		k, f := numbered(i + 1)
		s.Begin(k, f)
	}
	if len(s.byKey) != mostFlows || s.order.Len() != mostFlows {
		t.Errorf("%d histories, %d in order", len(s.byKey), s.order.Len())
	}
	if k, _ := numbered(1); s.byKey[k] != nil {
		t.Error("the oldest is still there")
	}
}

func TestAFlowIsFoundByAllItsNames(t *testing.T) {
	s := New()
	k, f := numbered(7)
	s.Begin(k, f)
	s.Call(k, sid.NewSocketID(0x77))
	for _, name := range []string{f.ID.String(), "8000000000000077", f.Stable.String(), f.Tuple.Local.String()} {
		if got := s.Find(name); got == nil || got.Key != k {
			t.Errorf("%s names %+v", name, got)
		}
	}
	for _, name := range []string{"", "8000000000000099", "fd5e::9", "[fd5e::9]:7", "web"} {
		if got := s.Find(name); got != nil {
			t.Errorf("%q names %+v", name, got.Key)
		}
	}
}

func TestAStallThatLastsIsOneEvent(t *testing.T) {
	s := New()
	k, f := numbered(1)
	s.Begin(k, f)
	at := time.Unix(1e9, 0)
	for _, ms := range []int{100, 200, 300, 20} { // the last is another one
		s.Lengthen(k, Event{At: at.Add(time.Duration(ms) * time.Millisecond), Kind: "stall", Stall: time.Duration(ms) * time.Millisecond})
	}
	var stalls []time.Duration
	for _, c := range s.Find(f.ID.String()).Events[1:] {
		stalls = append(stalls, c.Stall)
	}
	if !slices.Equal(stalls, []time.Duration{300 * time.Millisecond, 20 * time.Millisecond}) {
		t.Errorf("stalls: %v", stalls)
	}
}
