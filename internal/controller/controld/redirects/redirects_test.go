package redirects

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// A fake is what redirects live among.
type fake struct {
	to    map[sid.Locator]sid.Locator
	left  map[sid.Locator]bool
	way   map[sid.Locator]Way
	later map[time.Duration][]func()
}

func (f *fake) SetRedirect(from, to sid.Locator)      { f.to[from] = to }
func (f *fake) SetLeft(from sid.Locator, left bool)   { f.left[from] = left }
func (f *fake) Way(to sid.Locator) Way                { return f.way[to] }
func (f *fake) Later(...store.Change)                 {}
func (f *fake) After(after time.Duration, run func()) { f.later[after] = append(f.later[after], run) }
func (f *fake) pass(after time.Duration) {
	for _, run := range f.later[after] {
		run()
	}
}

func empty() (*fake, *Redirects) {
	f := &fake{map[sid.Locator]sid.Locator{}, map[sid.Locator]bool{}, map[sid.Locator]Way{}, map[time.Duration][]func(){}}
	return f, New(f, f, f, f, time.Minute)
}

func TestARedirectLeadsOnceTheWayStands(t *testing.T) {
	f, x := empty()
	f.way[2] = Way{Known: true, Waited: true, Told: 7, Applied: 6}
	x.Begin("s1", 1, 2)
	if x.Lead() || f.to[1] != 0 {
		t.Error("it leads to where no route goes yet")
	}
	f.way[2] = Way{Known: true, Waited: true, Told: 9, Applied: 7} // later rules are not waited for
	if !x.Lead() || f.to[1] != 2 || !x.All()[0].Leads {
		t.Errorf("it leads to %v, want 2", f.to[1])
	}
	if x.Lead() {
		t.Error("it begins twice")
	}
}

func TestARouterThatSaysNothingIsNotWaitedForLong(t *testing.T) {
	f, x := empty()
	f.way[2] = Way{Known: true, Waited: true, Told: 7}
	x.Begin("s1", 1, 2)
	x.Lead()
	f.pass(redirectPatience)
	if !x.Lead() {
		t.Error("it waits for ever")
	}
}

func TestRedirectsLeadToTheEndOfAChain(t *testing.T) {
	f, x := empty()
	f.way[2], f.way[3] = Way{Known: true}, Way{Known: true}
	x.Begin("s1", 1, 2)
	x.Lead()
	x.Begin("s1", 2, 3)
	x.Lead()
	if f.to[1] != 3 || f.to[2] != 3 {
		t.Errorf("they lead to %v and %v, want 3", f.to[1], f.to[2])
	}
}

func TestWhereARedirectEndedSendersAreTold(t *testing.T) {
	for what, end := range map[string]func(*fake, *Redirects){
		"its time":      func(f *fake, _ *Redirects) { f.pass(time.Minute) },
		"its host left": func(_ *fake, x *Redirects) { x.Forget("s1") },
		"its end left":  func(_ *fake, x *Redirects) { x.Abandon(2) },
	} {
		f, x := empty()
		x.Restore(store.Redirect{From: 1, To: 2, Host: "s1"})
		end(f, x)
		if f.to[1] != 0 || !f.left[1] || len(x.All()) != 0 {
			t.Errorf("%s: it leads to %v, left: %v", what, f.to[1], f.left[1])
		}
	}
}

func TestALocatorThatIsUsedAgainIsNotLeft(t *testing.T) {
	f, x := empty()
	f.way[2] = Way{Known: true}
	x.Begin("s1", 1, 2)
	x.Lead()
	x.End(1) // somebody is there
	f.left[1] = false
	f.pass(time.Minute)
	if f.left[1] || f.to[1] != 0 {
		t.Error("a redirect that is over ends again")
	}
}
