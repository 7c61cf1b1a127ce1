package e2e

import (
	"fmt"
	"net/netip"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// TestAHostIsReachedAtAllItsLocators: a host with two routers answers at both its locators; of a link that
// is lost, what comes for its locator follows the host, and the link's return is noticed.
func TestAHostIsReachedAtAllItsLocators(t *testing.T) {
	m := theMobile(t)
	first := moving.at["c1"]
	second := others[first]
	m.do("heal c1 " + second)
	at := m.places("c1", first, second)
	m.pings(at...)
	m.do("unplug c1 " + first)
	rest := m.places("c1", second)
	if rest[0] != at[1] {
		t.Errorf("the locator at %s was %v, is %v after the other link was lost", second, at[1], rest[0])
	}
	m.pings(at...) // the lost one is redirected
	m.do("heal c1 " + first)
	back := m.places("c1", first, second)
	if back[0] != at[0] || back[1] != at[1] {
		t.Errorf("locators %v after the link came back, before %v", back, at)
	}
	m.pings(at...)
	m.do("unplug c1 " + second)
	m.places("c1", first)
	m.goOn("the end of two places", m.talks(400)...)
}

// places waits until the host has a locator at each of these routers, and nowhere else.
func (m *mobile) places(host string, routers ...string) (at []sid.Locator) {
	m.t.Helper()
	nstest.Wait(m.t, m.look(), func() error {
		s, err := m.local(host).GetHostStatus(m.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil {
			return err
		}
		has := map[string]string{}
		for _, u := range s.Msg.Uplinks {
			if u.Up && u.Locator != "" {
				has[u.Router] = u.Locator
			}
		}
		at = at[:0]
		for _, r := range routers {
			if p, err := netip.ParsePrefix(has[r]); err == nil {
				at = append(at, sid.LocatorOf(p.Addr()))
			}
		}
		if s.Msg.State != "joined" || len(has) != len(routers) || len(at) != len(routers) {
			return fmt.Errorf("%s is %s %s with the locators %v, want one at each of %v", host, s.Msg.State, s.Msg.Reason, has, routers)
		}
		return nil
	})
	return at
}

// pings asks the host itself at each locator, from one that stays.
func (m *mobile) pings(at ...sid.Locator) {
	m.t.Helper()
	for _, l := range at {
		nstest.Wait(m.t, m.look(), func() error {
			out, err := m.run("s1", "ping", "-c1", "-W1", l.Host().String())
			if err != nil {
				return fmt.Errorf("ping %v: %w\n%s", l.Host(), err, out)
			}
			return nil
		})
	}
}
