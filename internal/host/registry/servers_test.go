package registry

import (
	"strings"
	"testing"
)

// TestWhoMayServeOnAHost. Attacker: a local user.
func TestWhoMayServeOnAHost(t *testing.T) {
	const root, daemon, somebody, dynamic, nobody = 0, 1, 1234, 61184, 65534 // daemon is in the group daemon on any Debian
	for _, c := range []struct {
		entries []string
		service string
		may     []uint32
	}{
		{nil, "web", []uint32{root, daemon, dynamic}},
		{[]string{"web=1234"}, "web", []uint32{somebody}},
		{[]string{"web=1234"}, "db", []uint32{root, daemon, dynamic}},
		{[]string{"web=nobody,root"}, "web", []uint32{root, nobody}},
		{[]string{"web=@daemon"}, "web", []uint32{daemon}},
		{[]string{"*=any"}, "web", []uint32{root, daemon, somebody, dynamic, nobody}},
		{[]string{"*=any", "web=root"}, "web", []uint32{root}},
		{[]string{"*=system,1234"}, "web", []uint32{root, daemon, somebody, dynamic}},
	} {
		list, err := ParseServers(c.entries)
		if err != nil {
			t.Fatalf("%q: %v", c.entries, err)
		}
		may := map[uint32]bool{}
		for _, uid := range c.may {
			may[uid] = true
		}
		for _, uid := range []uint32{root, daemon, somebody, dynamic, nobody} {
			if got := list.may(c.service, uid); got != may[uid] {
				t.Errorf("%q: user %d may serve %s: %v, want %v", c.entries, uid, c.service, got, may[uid])
			}
		}
	}
	for _, bad := range []string{"", "web", "web=", "=root", "web=root,", "web=nosuchuser", "web=@nosuchgroup", "WEB !=root"} {
		if _, err := ParseServers([]string{bad}); err == nil || !strings.Contains(err.Error(), "serve ") {
			t.Errorf("%q: %v; want an error that names the entry", bad, err)
		}
	}
	if _, err := ParseServers([]string{"web=root", "web=any"}); err == nil {
		t.Error("two lists of one service are taken")
	}
}
