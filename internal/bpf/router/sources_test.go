package router

import (
	"net/netip"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
)

// Attack: somebody at a host's port sends from a locator that is not there, to a service, to a bound flow and to a host that
// has moved. Locator 0 stands for a port at which a router is, and from there comes what may be from anywhere.
func TestPacketsFromWhereNobodyIsAreDropped(t *testing.T) {
	safety.Test(t, safety.Door)
	r := ready(t)
	moved, bound := host(9), host(1)
	must(t, r.SetRedirect(moved, host(2)))
	at := sid.LocatorOf(from)
	to := map[string]netip.Addr{"a service": space.ServiceAddr(web), "a flow": bound.Addr(1<<63 | 7), "a host that moved": moved.Addr(1<<63 | 7)}
	fates := func(what string, src netip.Addr, passes bool) {
		t.Helper()
		before, err := r.Counters()
		must(t, err)
		for name, dst := range to {
			p := syn(src, dst, 80)
			if res := run(t, r, p.Bytes()); (res.Verdict == bpftest.Next) != passes {
				t.Errorf("%s, to %s: %v; want it to pass: %v", what, name, res, passes)
			}
		}
		after, err := r.Counters()
		must(t, err)
		if got := after["dropped_source"] - before["dropped_source"]; got != 0 == passes {
			t.Errorf("%s: %d are counted", what, got)
		}
	}
	fates("before the sources are known", from, true)
	must(t, r.Filter(true))
	fates("nobody is there", from, false)
	returns := func(what string, by sid.Locator, passes bool) {
		t.Helper()
		for _, retry := range []uint8{1, 4, sid.MaxRetry} {
			p := syn(host(3).Addr(1<<63|5), space.ServiceAddr(web), 80) // of a client elsewhere
			p.FlowLabel = uint32(sid.NewLabel(by, retry))
			if res := run(t, r, p.Bytes()); (res.Verdict == bpftest.Next) != passes {
				t.Errorf("%s, returned the %dth time: %v; want it to pass: %v", what, retry, res, passes)
			}
		}
	}
	returns("by who is not there", at, false)
	returns("by nobody", 0, false)
	fates("from another network", netip.MustParseAddr("2001:db8::1"), true)
	must(t, r.SetSource(Source{1, at}, true))
	fates("its host is there", from, true)
	returns("by who is there", at, true)
	returns("by who is elsewhere", host(5), false)
	fates("another one's locator", host(3).Addr(1<<63|5), false)
	must(t, r.SetSource(Source{1, at}, false), r.SetSource(Source{2, at}, true))
	fates("its host is at another port", from, false)
	must(t, r.SetSource(Source{1, 0}, true))
	fates("a router is there", from, true)
	must(t, r.SetSource(Source{1, 0}, false), r.SetSource(Source{lowPorts, 0}, true))
	fates("the router is gone", from, false)
	must(t, r.Filter(false))
	fates("sources are not known any more", from, true)
}

// Who may send where outlives the daemon.
func TestSourcesOutliveTheDaemon(t *testing.T) {
	cfg := Config{Pin: filepath.Join(nstest.BPFFS, "router-sources")}
	r := open(t, cfg)
	s := Source{1, host(1)}
	must(t, r.Filter(true), r.SetSource(s, true), r.SetSource(Source{2, 0}, true), r.Commit(1))
	again := open(t, cfg) // while the program is there that an interface would keep
	if got := again.sources; len(got) != 2 || !got[s] || !got[Source{2, 0}] || !again.filtering {
		t.Errorf("the next one knows %v, and filters: %v", got, again.filtering)
	}
	if res := run(t, again, syn(host(2).Addr(1<<63|5), host(3).Addr(1<<63|7), 80).Bytes()); res.Verdict != bpftest.Shot {
		t.Errorf("%v; want it dropped", res)
	}
}
