package hostd

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

func storied(n int) (session.Key, host.Flow) {
	stable := placeA.Addr(1<<63 | uint64(n))
	f := host.Flow{ID: sid.NewSocketID(uint64(n)), Role: host.Client, Locator: placeA, Stable: stable, State: host.BoundFlow,
		Tuple:    host.Tuple{Local: netip.AddrPortFrom(space.Identity(1), uint16(n)), Remote: netip.AddrPortFrom(webAddr, 80), Proto: sid.TCP},
		WirePeer: netip.AddrPortFrom(placeB.Addr(1<<63), 80)}
	return session.Key{Stable: stable, Role: session.Client}, f
}

func TestAStoryKeepsItsBeginningAndItsNewestChapters(t *testing.T) {
	s := newStories()
	k, f := storied(1)
	s.begin(k, f)
	for i := range 100 {
		s.add(k, chapter{at: time.Unix(int64(i), 0), kind: "move", text: fmt.Sprint(i)})
	}
	c := s.find(f.ID.String()).chapters
	if len(c) != mostChapters || c[0].kind != "begin" || c[1].text != "69" || c[mostChapters-1].text != "99" {
		t.Errorf("%d chapters, from %+v and %+v to %+v", len(c), c[0], c[1], c[len(c)-1])
	}
}

func TestOldStoriesMakeRoom(t *testing.T) {
	s := newStories()
	for i := range mostStories + 10 {
		k, f := storied(i + 1)
		s.begin(k, f)
	}
	if len(s.byKey) != mostStories || s.order.Len() != mostStories {
		t.Errorf("%d stories, %d in order", len(s.byKey), s.order.Len())
	}
	if k, _ := storied(1); s.byKey[k] != nil {
		t.Error("the oldest is still there")
	}
}

func TestAFlowIsFoundByAllItsNames(t *testing.T) {
	s := newStories()
	k, f := storied(7)
	s.begin(k, f)
	s.call(k, sid.NewSocketID(0x77))
	for _, name := range []string{f.ID.String(), "8000000000000077", f.Stable.String(), f.Tuple.Local.String()} {
		if got := s.find(name); got == nil || got.key != k {
			t.Errorf("%s names %+v", name, got)
		}
	}
	for _, name := range []string{"", "8000000000000099", "fd5e::9", "[fd5e::9]:7", "web"} {
		if got := s.find(name); got != nil {
			t.Errorf("%q names %+v", name, got.key)
		}
	}
}

func TestAStallThatLastsIsOneChapter(t *testing.T) {
	s := newStories()
	k, f := storied(1)
	s.begin(k, f)
	at := time.Unix(1e9, 0)
	for _, ms := range []int{100, 200, 300, 20} { // the last is another one
		s.lengthen(k, chapter{at: at.Add(time.Duration(ms) * time.Millisecond), kind: "stall", stall: time.Duration(ms) * time.Millisecond})
	}
	var stalls []time.Duration
	for _, c := range s.find(f.ID.String()).chapters[1:] {
		stalls = append(stalls, c.stall)
	}
	if !slices.Equal(stalls, []time.Duration{300 * time.Millisecond, 20 * time.Millisecond}) {
		t.Errorf("stalls: %v", stalls)
	}
}

func FuzzParseHeld(f *testing.F) {
	_, flow := storied(1)
	f.Add(held{flow.Tuple, flow.ID}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, rest, err := parseHeld(b)
		if err == nil && string(h.append(nil))+string(rest) != string(b) {
			t.Errorf("%x is read as %v and %x", b, h, rest)
		}
	})
}
