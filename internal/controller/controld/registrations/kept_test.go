package registrations

import (
	"crypto/ed25519"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

var theWeb = names.Record{ID: web.Service, Name: "web", Version: 1}

func port(n int) sid.Triple { return sid.Triple{Service: web.Service, Proto: sid.TCP, Port: uint16(n)} }

// records are the keys of what is stored of hosts.
func (n *network) records() []string {
	keys := slices.Sorted(maps.Keys(n.stored))
	return slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, "registrations/") })
}

func TestWhatAHostServesIsStoredAtOnceAndThenAtIntervals(t *testing.T) {
	x, n := newRegistrations(theWeb)
	x.Take("s1", registration(web))
	x.Flush()
	if got := n.records(); !slices.Equal(got, []string{"registrations/s1/1"}) {
		t.Fatalf("stored are %q, want one record", got)
	}
	now, writes := time.Now(), 0
	for i := range 10 * keepAhead { // all at once
		clear(n.stored)
		x.Take("s1", registration(port(100+i)))
		x.keep(now)
		writes += len(n.records())
	}
	if writes < 2 || writes > keepAhead+1 || len(n.later) != 1 {
		t.Fatalf("%d writes of what comes at once, want %d; %d timers, want one", writes, keepAhead, len(n.later))
	}
	n.later[0]()
	x.keep(now.Add(keepEvery))
	if got := n.records(); len(got) != 1 || len(x.unkept) > 0 {
		t.Errorf("stored are %q after the interval, want one record", got)
	}
	clear(n.stored)
	now = now.Add(time.Minute)
	x.Replace("s1", nil)
	x.keep(now)
	x.Take("s1", registration(web))
	x.keep(now)
	x.Left("s1")
	if got := n.records(); len(got) > 0 || len(x.unkept) > 0 {
		t.Errorf("stored are %q of a host that left, want none", got)
	}
}

// A change writes its page, not all that a host with thousands of instances serves.
func TestAHostWithManyInstancesHasManyRecords(t *testing.T) {
	x, n := newRegistrations(theWeb)
	for i := range 2*pageSize + 1 {
		x.Take("s1", registration(port(i+1)))
	}
	now := time.Now()
	step := func() []string {
		clear(n.stored)
		now = now.Add(time.Minute)
		x.keep(now)
		return n.records()
	}
	if got := step(); len(got) != 3 {
		t.Fatalf("stored are %q, want three records", got)
	}
	unready := registration(port(1))
	unready.Ready = false
	x.Take("s1", unready)
	if got := step(); !slices.Equal(got, []string{"registrations/s1/1"}) {
		t.Errorf("a change of one instance stores %q", got)
	}
	unready.Reason = "another one"
	x.Take("s1", unready)
	if got := step(); got != nil {
		t.Errorf("words store %q", got)
	}
	x.Take("s1", unready) // again
	gone := registration(port(2))
	gone.Gone = true
	x.Take("s1", gone)
	x.Take("s1", registration(port(5000))) // there is room on the first page now
	if got := step(); !slices.Equal(got, []string{"registrations/s1/1"}) {
		t.Errorf("one for another stores %q", got)
	}
}

// record is what a term before stored of s1.
func record(all ...store.Registration) store.Registrations {
	return store.Registrations{Host: "s1", Page: 1, Key: []byte("key"), BootID: "boot", Netns: "1", All: all}
}

func instance(t sid.Triple) store.Registration {
	return store.Registration{Service: t.Service, Proto: t.Proto, Port: t.Port, Readiness: plan.Readiness{Ready: true}, Since: 1}
}

// remembering are registrations of a term that has just begun: s1 has no session.
func remembering(services ...names.Record) (*Registrations, *network) {
	x, n := newRegistrations(services...)
	x.Forget("s1")
	n.away, n.host = true, store.Host{Name: "s1", BootID: "boot", Netns: "1"}
	return x, n
}

func TestWhatServedBeforeATermIsPlannedInIt(t *testing.T) {
	x, n := remembering(theWeb)
	x.Remember(record(instance(web), instance(port(81))))
	if got := n.happened(); len(n.at["s1"]) != 2 || got != nil || !x.Of("s1", web).Up {
		t.Fatalf("in the plan are %v, and %q happened; want both, and nothing new", n.at, got)
	}
	n.away = false
	x.Joined("s1", []byte("key"), false)
	x.Flush()
	if got := n.records(); got != nil {
		t.Errorf("a host that is back, as it was, is stored again: %q", got)
	}
	x.Replace("s1", nil)
	x.Flush()
	if got := n.happened(); len(n.at["s1"]) > 0 || !slices.Equal(got, []string{"instance.down web", "instance.down web"}) {
		t.Errorf("it says that it serves nothing: %q, in the plan are %v", got, n.at)
	}
}

func TestARecordIsCheckedAsIfTheHostSaidItNow(t *testing.T) {
	listed := theWeb
	listed.Access.Servers = []string{"s1:web", "s2"}
	key, host := ed25519.NewKeyFromSeed(make([]byte, 32)), []byte(strings.Repeat("k", 32))
	keyed := theWeb
	keyed.Access.Key = key.Public().(ed25519.PublicKey)
	permitted := func(until time.Duration) store.Registrations {
		now := time.Now()
		r := record(instance(web))
		r.Key = host
		p := wire.Delegate(key, web.Service, host, now.Unix()-60, now.Add(until).Unix())
		r.All[0].Permit = p.Append(nil)
		return r
	}
	by := func(user string) store.Registrations {
		r := instance(web)
		r.User = user
		return record(r)
	}
	for what, c := range map[string]struct {
		service names.Record
		record  store.Registrations
		change  func(*network)
		want    int
	}{
		"as it was":                    {service: theWeb, record: record(instance(web)), want: 1},
		"by a user of the list":        {service: listed, record: by("web"), want: 1},
		"by another user":              {service: listed, record: by("nobody")},
		"with a permit":                {service: keyed, record: permitted(time.Hour), want: 1},
		"with one that ended":          {service: keyed, record: permitted(-time.Second)},
		"without one":                  {service: keyed, record: record(instance(web))},
		"of a service that is no more": {record: record(instance(web))},
		"of before it booted":          {service: theWeb, record: record(instance(web)), change: func(n *network) { n.host.BootID = "next" }},
		"of another host of the name":  {service: theWeb, record: record(instance(web)), change: func(n *network) { n.host.Key = []byte("another") }},
		"by a key that was revoked":    {service: theWeb, record: record(instance(web)), change: func(n *network) { n.revoked = "key" }},
		"no instance at all":           {service: theWeb, record: record(store.Registration{})},
	} {
		x, n := remembering(c.service)
		n.stored["registrations/s1/1"] = store.PutRegistrations(c.record)
		if c.change != nil {
			c.change(n)
		}
		x.Remember(c.record)
		x.Flush()
		if got := len(n.at["s1"]); got != c.want || len(n.records()) != c.want {
			t.Errorf("%s: %d instances in the plan and %q in the store, want %d; %q happened", what, got, n.records(), c.want, n.happened())
		}
	}
}

func TestARecordThatCannotBeReadIsReplacedByWhatTheHostSays(t *testing.T) {
	for serves := range 2 {
		x, n := remembering(theWeb)
		n.stored["registrations/s1/2"] = store.PutRegistrations(store.Registrations{Host: "s1", Page: 2})
		x.Unread("s1", 2)
		if x.Flush(); len(n.records()) != 1 {
			t.Error("it is gone before the host has said anything")
		}
		n.away = false
		x.Joined("s1", []byte("key"), false)
		x.Replace("s1", nil)
		for i := range serves {
			x.Take("s1", registration(port(i+1)))
		}
		x.Flush()
		if got := n.records(); slices.Contains(got, "registrations/s1/2") || len(got) != serves {
			t.Errorf("the host serves %d, stored are %q", serves, got)
		}
	}
}
