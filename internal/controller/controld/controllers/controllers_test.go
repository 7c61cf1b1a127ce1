package controllers

import (
	"slices"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/store"
)

// A fake notes what it is told.
type fake struct {
	saved  int
	events []string
	told   [][]string
}

func (f *fake) Later(list ...store.Change) { f.saved += len(list) }
func (f *fake) Tell(kind, subject, _ string, _ ...string) {
	f.events = append(f.events, kind+" "+subject)
}
func (f *fake) tell(all *apiv1.Controllers) { f.told = append(f.told, all.GetEndpoints()) }

func runs(name, at string) store.Candidate { return store.Candidate{Name: name, API: []string{at}} }

func TestDaemonsAreToldOnceWhereControllersAre(t *testing.T) {
	f := &fake{}
	x := New("c2", f, f, f.tell)
	if x.All() != nil {
		t.Error("one that is alone tells daemons of others")
	}
	for range 2 {
		x.Run([]store.Candidate{runs("c1", "a:1"), runs("c2", "b:1")})
	}
	if len(f.told) != 1 || !slices.Equal(f.told[0], []string{"b:1", "a:1"}) || f.saved != 2 {
		t.Errorf("told %v, %d saved: want its own endpoint first, once", f.told, f.saved)
	}
}

func TestWhoIsGoneIsRememberedUntilItIsForgotten(t *testing.T) {
	f := &fake{}
	x := New("c2", f, f, f.tell)
	x.Restore([]store.Controller{{Name: "c1", API: []string{"a:1"}}})
	if _, _, known := x.Count(); known {
		t.Error("it is said who runs before it is known")
	}
	both := []store.Candidate{runs("c1", "a:1"), runs("c2", "b:1")}
	x.Run(both)
	x.Run(both[1:])
	x.Run(both)
	x.Run(both[1:])
	if want := []string{"controller.gone c1", "controller.back c1", "controller.gone c1"}; !slices.Equal(f.events, want) {
		t.Errorf("the history has %v, want %v", f.events, want)
	}
	if known, here := x.Look("c1"); !known || here {
		t.Errorf("known: %v, runs: %v", known, here)
	}
	x.Forget("c1")
	if last := f.told[len(f.told)-1]; !slices.Equal(last, []string{"b:1"}) {
		t.Errorf("daemons are told of %v", last)
	}
}
