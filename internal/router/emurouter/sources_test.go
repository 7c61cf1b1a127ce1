package emurouter

import (
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
)

// Attack: a host sends from a locator that is not its own. From where a router is anything may come.
func TestPacketsFromWhereNobodyIsAreDropped(t *testing.T) {
	safety.Test(t, safety.Door)
	s := newScene(t, true)
	dropped := uint64(0)
	passes := func(what string, want bool) {
		t.Helper()
		for name, dst := range map[string]sid.Locator{"bound": space.Locator(0x201), "who has moved": moved} {
			s.send(t, s.hostSide, syn(dst.Addr(1<<63|5), 80).Bytes())
			if (len(s.net.got) == 1) != want {
				t.Errorf("%s, to %s: %d packets went on; want it to pass: %v", what, name, len(s.net.got), want)
			}
			if !want {
				dropped++
			}
		}
		if got := s.counts()["dropped_source"]; got != dropped {
			t.Errorf("%s: %d are counted, want %d", what, got, dropped)
		}
	}
	passes("before the sources are known", true)
	s.filter = true
	passes("nobody is there", false)
	by := space.Locator(0x777)
	returns := func(what string, want bool) {
		t.Helper()
		for _, retry := range []uint8{1, 4, sid.MaxRetry} {
			p := syn(space.ServiceAddr(web), 80)
			p.FlowLabel = uint32(sid.NewLabel(by, retry))
			if s.send(t, s.hostSide, p.Bytes()); (len(s.net.got) == 1) != want {
				t.Errorf("%s, returned the %dth time: %d packets went on; want it to pass: %v", what, retry, len(s.net.got), want)
			}
			if !want {
				dropped++
			}
		}
	}
	returns("by who is not there", false)
	s.sources[0] = map[sid.Locator]struct{}{by: {}}
	returns("by who is there", true)
	s.sources[0] = nil
	s.sources[1] = map[sid.Locator]struct{}{sid.LocatorOf(client): {}}
	passes("its host is at another port", false)
	s.sources[0] = map[sid.Locator]struct{}{sid.LocatorOf(client): {}}
	passes("its host is there", true)
	s.sources[0], s.leads[0] = nil, true
	passes("a router is there", true)
}
