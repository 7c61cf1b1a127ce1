package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// A follower holds rules of every kind, as a router does.
type follower struct {
	*mirror
	sources map[Source]bool
}

func newFollower() *follower { return &follower{newMirror(), map[Source]bool{}} }

func (m *follower) apply(r Rules) {
	m.mirror.apply(r)
	for _, x := range r.Sources {
		put(m.sources, Source{Port: x.Port, Locator: x.Locator}, true, x.Gone)
	}
}

func (m *follower) held() Held {
	return Held{Routes: maps.Keys(m.routes), Services: maps.Keys(m.services), Triples: maps.Keys(m.resolutions), Probes: maps.Keys(m.probes),
		Redirects: maps.Keys(m.redirects), Gone: maps.Keys(m.gone), Sources: maps.Keys(m.sources)}
}

func (m *follower) String() string {
	return m.mirror.String() + fmt.Sprintln("sources", slices.SortedFunc(maps.Keys(m.sources), bySource))
}

// someRules are entries of every kind, few enough to meet those of another draw.
func someRules(t *rapid.T) (r Rules) {
	few := func(what string) []int { return rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, what) }
	for _, i := range few("routes") {
		at := locator(i).Addr(uint64(rapid.IntRange(0, 1).Draw(t, "host bits")))
		r.Routes = append(r.Routes, Route{Prefix: netip.PrefixFrom(at, 64).Masked(), Port: "p"})
	}
	for _, i := range few("services") {
		r.Services = append(r.Services, ServiceRule{Service: serviceN(i), Instances: 1})
	}
	for _, i := range few("resolutions") {
		r.Resolutions = append(r.Resolutions, Resolution{Triple: sid.Triple{Service: serviceN(i), Proto: sid.TCP, Port: 80}, Targets: []resolve.Target{{Locator: locator(i), Weight: 1}}})
	}
	for _, i := range few("probes") {
		r.Probes = append(r.Probes, Probe{Locator: locator(i), Port: "p"})
	}
	for _, i := range few("redirects") {
		r.Redirects = append(r.Redirects, Redirect{From: locator(i), To: locator(i + 1)})
	}
	for _, i := range few("gone") {
		r.Gone = append(r.Gone, Gone{Locator: locator(i)})
	}
	for _, i := range few("sources") {
		r.Sources = append(r.Sources, Source{Port: "p", Locator: locator(i)})
	}
	return r
}

// TestASnapshotLeavesWhatItNames holds whatever was there before, in however many pieces the snapshot comes, and where the
// beginning of another one, which never ended, came before it.
func TestASnapshotLeavesWhatItNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got, want := newFollower(), newFollower()
		var naming Naming
		got.apply(someRules(t))
		if rapid.Bool().Draw(t, "one before broke off") {
			naming.Begin()
			broken := someRules(t)
			naming.Note(broken)
			got.apply(broken)
		}
		naming.Begin()
		for range rapid.IntRange(0, 3).Draw(t, "pieces") {
			piece := someRules(t)
			naming.Note(piece)
			got.apply(piece)
			want.apply(piece)
		}
		got.apply(naming.Commit(got.held()))
		if got.String() != want.String() {
			t.Fatalf("holds\n%vwant\n%v", got, want)
		}
		change := someRules(t)
		naming.Note(change)
		got.apply(change)
		want.apply(change)
		if rest := naming.Commit(got.held()); naming.Under() || !rest.Empty() || got.String() != want.String() {
			t.Fatalf("after a change holds\n%vwant\n%v", got, want)
		}
	})
}
