package access

import (
	"slices"
	"testing"

	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// A fake is a network of hosts, each with its locators.
type fake struct {
	at      map[string][]sid.Locator
	kept    map[string][]sid.Locator
	serves  map[sid.ServiceID][]string
	changed []sid.ServiceID
}

func (f *fake) Locators(host string) []sid.Locator { return slices.Clone(f.at[host]) }
func (f *fake) Kept() map[string][]sid.Locator     { return f.kept }
func (f *fake) Tell(_, _, _ string, _ ...string)   {}
func (f *fake) EachHost(id sid.ServiceID, on func(string)) {
	for _, host := range f.serves[id] {
		on(host)
	}
}

// with are the lists of services that have these lists.
func with(t *testing.T, allow map[string][]string) (*fake, *Lists, map[string]names.Record) {
	t.Helper()
	f := &fake{at: map[string][]sid.Locator{}, kept: map[string][]sid.Locator{}, serves: map[sid.ServiceID][]string{}}
	all, records := names.NewTable("svc"), map[string]names.Record{}
	x := New(all, f, f, func(id sid.ServiceID) { f.changed = append(f.changed, id) })
	suffix := sid.Suffix(1 << 16)
	for name, list := range allow {
		suffix++
		r, err := all.Check(names.Record{Name: name, ID: sid.ServiceID{SS: 1, Suffix: suffix}, Version: 1, Access: names.Access{Allow: list}})
		if err == nil {
			err = all.Add(r)
		}
		if err != nil {
			t.Fatal(err)
		}
		records[name] = r
		x.Watch(r)
	}
	return f, x, records
}

func one(l sid.Locator) resolve.AccessList {
	return resolve.NewAccessList([]resolve.Prefix{resolve.NewPrefix(l, sid.LocatorBits)})
}

func TestAListFollowsItsHost(t *testing.T) {
	f, x, all := with(t, map[string][]string{"web": {"c1"}})
	web := all["web"]
	f.at["c1"] = []sid.Locator{7}
	x.Move()
	if got := x.Set(web.ID); !slices.Equal(got, one(7)) {
		t.Fatalf("who may connect is %v", got)
	}
	before := x.Edition(web)
	f.at["c1"], f.kept["c1"] = []sid.Locator{9}, []sid.Locator{7}
	x.Move()
	if x.Edition(web) != before {
		t.Error("it is looked at although nobody said that c1 has moved")
	}
	x.TouchHost("c1")
	x.Move()
	if got := x.Set(web.ID); !got.Allows(7) || !got.Allows(9) || got.Allows(8) || x.Edition(web) == before {
		t.Errorf("who may connect is %v: want where c1 is, and what it has left and keeps", got)
	}
	x.TouchHost("c1")
	if x.Move(); len(f.changed) != 2 {
		t.Errorf("told %d times, want twice: nothing has changed since", len(f.changed))
	}
}

func TestAListFollowsWhoServesAService(t *testing.T) {
	f, x, all := with(t, map[string][]string{"db": {names.ServicePrefix + "web"}, "web": nil})
	f.at["s1"] = []sid.Locator{5}
	x.Move()
	if got := x.Set(all["db"].ID); got.Allows(5) {
		t.Error("a host may connect that serves nothing")
	}
	f.serves[all["web"].ID] = []string{"s1"}
	x.TouchService(all["web"].ID)
	x.Move()
	if got := x.Set(all["db"].ID); !got.Allows(5) {
		t.Error("a host that serves web may not connect")
	}
}

func TestAnEmptySetIsNoMissingOne(t *testing.T) {
	_, x, all := with(t, map[string][]string{"closed": {names.Nobody}, "open": nil})
	x.Move()
	if got := x.Of(all["closed"].ID); got == nil || len(got.Allow) != 0 {
		t.Errorf("hosts are told %v of a service that nobody may connect to", got)
	}
	if got := x.Of(all["open"].ID); got != nil {
		t.Errorf("hosts are told %v of a service for everybody", got)
	}
}
