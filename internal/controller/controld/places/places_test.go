package places

import (
	"fmt"
	"slices"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/locators"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// a network of the routers r1 and r2, of the blocks 1 and 2, as places see it. It notes what follows from them.
type network struct {
	*Places
	said     []string
	silent   map[string]bool
	away     map[string]bool // routers without a session
	gone     map[string]bool // routers that were forgotten
	restored bool
	saved    int
}

func (n *network) note(format string, args ...any) {
	n.said = append(n.said, fmt.Sprintf(format, args...))
}

// happened is what was noted since it was asked last.
func (n *network) happened() []string {
	said := n.said
	n.said = nil
	return said
}

func (n *network) SetHost(h plan.Host)                            {}
func (n *network) RemoveHost(l sid.Locator)                       { n.note("remove %d", l) }
func (n *network) SetHostState(sid.Locator, plan.HostState) bool  { return true }
func (n *network) SetHeld(sid.Locator, string, string, string)    {}
func (n *network) HeldBy(sid.Locator) string                      { return "" }
func (n *network) SetLeft(l sid.Locator, left bool)               {}
func (n *network) Begin(host string, from, to sid.Locator)        { n.note("redirect %d to %d", from, to) }
func (n *network) End(sid.Locator)                                {}
func (n *network) Abandon(from sid.Locator)                       { n.note("abandon %d", from) }
func (n *network) TouchHost(string)                               {}
func (n *network) Later(changes ...store.Change)                  { n.saved += len(changes) }
func (n *network) After(time.Duration, func())                    {}
func (n *network) Connected(string) bool                          { return false }
func (n *network) Lease(host string)                              { n.note("lease %s", host) }
func (n *network) Back(host string)                               {}
func (n *network) Gone(host string, l ...uint64)                  { n.note("gone %s %d", host, l) }
func (n *network) Certificate(string, []byte, sid.Locator) []byte { return nil }
func (n *network) Tell(kind, subject, _ string, _ ...string)      { n.note("%s %s", kind, subject) }
func (n *network) Certified(sid.Locator) string                   { return "" }
func (n *network) CertifiedFor(sid.Locator, string) time.Duration { return 0 }
func (n *network) Here(router string) bool                        { return !n.away[router] }
func (n *network) Forgotten(router string) bool                   { return n.gone[router] }
func (n *network) Block(router string) (sid.Locator, bool) {
	return map[string]sid.Locator{"r1": 0x100, "r2": 0x200}[router], (router == "r1" || router == "r2") && !n.gone[router]
}

// plans is the plan, whose Prefer is not that of Places.
type plans struct{ *network }

func (p plans) Prefer(l sid.Locator) bool { p.note("prefer %d", l); return true }

// stays tell the locators who is where.
type stays struct{ *network }

func (s stays) At(l sid.Locator) (host string, doubted, here bool) {
	at, here := s.Places.At(l)
	return at.Host, at.Doubted, here
}
func (s stays) Restored() bool { return s.restored }

// silences are of hosts that do not answer.
type silences struct{ *network }

func (s silences) Since(host string) (t time.Time, silent bool) { return t, s.silent[host] }
func (s silences) Begin(host string)                            { s.silent[host] = true; s.note("silent %s", host) }
func (s silences) End(host string)                              { delete(s.silent, host) }

// redirects are of locators that were left.
type redirects struct{ *network }

func (redirects) Forget(string) {}

func newPlaces() *network {
	n := &network{silent: map[string]bool{}, away: map[string]bool{}, gone: map[string]bool{}}
	l := locators.New(locators.Config{Plan: plans{n}, Saver: n, Loop: n, Hosts: stays{n}, Touch: func(string) {}})
	n.Places = New(Config{
		Plan: plans{n}, Locators: l, Redirects: redirects{n}, Silences: silences{n}, Access: n, Routers: n, Hosts: n, Events: n, Saver: n,
		Waits: func() bool { return false }, Restored: func() bool { return n.restored }, Full: func(string, error) {}, Changed: func() {},
	})
	n.Joined("r1")
	n.Joined("r2")
	return n
}

// host puts one at places, which are its locators: of r1 below 0x200, of r2 from there on.
func (n *network) host(name string, at ...sid.Locator) *Host {
	var all []store.Place
	for _, l := range at {
		all = append(all, store.Place{Locator: l, Router: fmt.Sprint("r", uint64(l)>>8), Port: "p"})
	}
	h := &Host{Host: store.Host{Name: name, Here: true, Place: all[0], Others: all[1:]}}
	n.Own(h)
	n.Settle(h)
	n.happened()
	return h
}

func (n *network) says(router string, l sid.Locator, state plan.HostState) {
	n.Said(router, []*apiv1.HostState{{Locator: uint64(l), State: state.String()}})
}

func (n *network) wants(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := n.happened(); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// What a router says of a host: a silence is told once, an absence is decided about later, and while the host sets itself up
// silence says nothing.
func TestWhatARouterSaysOfAHost(t *testing.T) {
	n := newPlaces()
	h := n.host("s1", 0x101)
	n.says("r1", 0x101, plan.HostSuspect)
	n.wants(t, "it sets itself up")
	if got := n.Text(h); got != "joining" {
		t.Errorf("it is %s", got)
	}
	n.says("r1", 0x101, plan.HostUp)
	n.says("r1", 0x101, plan.HostSuspect)
	n.wants(t, "it falls silent", "host.suspect s1", "silent s1")
	n.says("r1", 0x101, plan.HostGone)
	n.wants(t, "for long", "host.gone s1", "silent s1", "lease s1")
	n.says("r1", 0x101, plan.HostUp)
	n.wants(t, "it is back", "host.back s1")
	if n.silent["s1"] || n.State(h) != plan.HostUp {
		t.Error("it answers and counts as silent")
	}
	n.says("r2", 0x101, plan.HostGone)
	n.wants(t, "a router whose host it is not")
}

// A host that is reached elsewhere is not silent.
func TestAHostAtTwoPlacesIsSilentAtBoth(t *testing.T) {
	n := newPlaces()
	h := n.host("s1", 0x101, 0x201)
	n.says("r1", 0x101, plan.HostUp)
	n.says("r2", 0x201, plan.HostUp)
	n.says("r1", 0x101, plan.HostGone)
	n.wants(t, "one is gone", "host.uplink s1")
	if answers, silent := n.Probes(h); !answers || !silent {
		t.Errorf("it answers %v, and is silent %v", answers, silent)
	}
	n.says("r2", 0x201, plan.HostSuspect)
	n.wants(t, "the other, too", "host.suspect s1", "silent s1")
	if probed, away := n.Witnesses(h); !probed || away != "" {
		t.Errorf("probed %v, away %q", probed, away)
	}
	n.away["r2"] = true
	if _, away := n.Witnesses(h); away != "r2" {
		t.Errorf("away is %q", away)
	}
}

// A router that has just come knows nothing yet: that it says nothing of a host is no word.
func TestARouterThatHasJustComeHasSaidNothing(t *testing.T) {
	n := newPlaces()
	h := n.host("s1", 0x101)
	n.Joined("r1")
	if !n.Early(h, time.Hour) || n.Early(h, time.Nanosecond) {
		t.Error("its router came a moment ago: want that it is early for an hour, and for a nanosecond not")
	}
	n.away["r1"] = true
	if n.Early(h, time.Hour) {
		t.Error("its router is away, and is early")
	}
	n.Forget("r1")
	if _, is := n.Places.came["r1"]; is {
		t.Error("its router is forgotten, and it is known when it came")
	}
}

// Attack: a router that is a member tells of ever more hosts at locators that are not its own.
func TestARoutersWordIsKeptOfItsBlockAlone(t *testing.T) {
	n := newPlaces()
	for i := range 1 << 16 {
		n.says("r1", sid.Locator(i)<<20, plan.HostUp)
		n.says("r1", sid.Locator(i), plan.HostUp)
	}
	if got := len(n.Places.said["r1"]); got != 255 {
		t.Errorf("of a liar's word %d locators are kept, want the 255 of its block", got)
	}
}

// A router that no neighbour hears makes its hosts suspect, and takes that back when it comes; one that is forgotten loses
// them.
func TestWhatBecomesOfTheHostsOfARouter(t *testing.T) {
	n := newPlaces()
	h := n.host("s1", 0x101)
	n.says("r1", 0x101, plan.HostUp)
	n.Unreachable("r1")
	n.wants(t, "its router is silent", "host.suspect s1", "silent s1")
	n.Joined("r1")
	n.wants(t, "its router is back", "host.back s1")
	if got := n.HostsAt("r1"); !slices.Equal(got, []string{"s1"}) {
		t.Errorf("at r1 are %q", got)
	}
	n.gone["r1"] = true
	if got := n.Forget("r1"); !slices.Equal(got, []string{"s1"}) || n.State(h) != plan.HostGone || len(n.HostsAt("r1")) > 0 {
		t.Errorf("without their router: %q, and s1 is %v", got, n.State(h))
	}
	_, err := n.For(h, "s1", &apiv1.Attachment{Router: "r1"}, "", nil)
	if ForgottenRouter(err) != "r1" {
		t.Errorf("at a router that was forgotten: %v", err)
	}
	if _, err = n.For(h, "s1", &apiv1.Attachment{Router: "r3"}, "", nil); err == nil || ForgottenRouter(err) != "" {
		t.Errorf("at a router that there is not: %v", err)
	}
}

func TestAHostAttachesAndLeavesPlaces(t *testing.T) {
	n := newPlaces()
	h := n.host("s1", 0x101)
	ask := &apiv1.Attach{Attachment: &apiv1.Attachment{Router: "r2", Port: "p", LinkLocal: "fe80::1"}, Locator: sid.Locator(0x207).String()}
	if got := n.Attach(h, ask); got.Locator != sid.Locator(0x207).String() || len(h.Others) != 1 {
		t.Errorf("attached: %v", got)
	}
	n.wants(t, "it attaches", "host.attach s1")
	if got := n.Attach(h, &apiv1.Attach{Attachment: &apiv1.Attachment{Router: "r2", LinkLocal: "::1"}}); got.Refused == "" {
		t.Errorf("attached at no link-local address: %v", got)
	}
	n.Detach(h, &apiv1.Detach{Locator: 0x101, To: 0x999})
	n.wants(t, "it goes where it is not", "host.error s1")
	n.Detach(h, &apiv1.Detach{Locator: 0x101, To: 0x207})
	n.wants(t, "it leaves the preferred one", "prefer 519", "host.prefer s1", "remove 257", "redirect 257 to 519", "host.detach s1")
	n.Detach(h, &apiv1.Detach{Locator: 0x207})
	n.wants(t, "it leaves the last one", "host.error s1")
	if at, here := n.At(0x207); !here || at.Host != "s1" || h.Locator != 0x207 || len(n.Of(h)) != 1 {
		t.Errorf("it is at %+v, %v", at, h.Host)
	}
	saved := n.saved
	if n.Leave(h); n.saved == saved {
		t.Error("the locator is not kept from others")
	}
	if _, here := n.At(0x207); here {
		t.Error("it left and is here")
	}
}

// Who goes nowhere is told as gone, who moves is followed, and another machine of the name is not.
func TestWhatComesForAPlaceThatWasLeft(t *testing.T) {
	n := newPlaces()
	h := n.host("s1", 0x101, 0x201, 0x102)
	n.Detach(h, &apiv1.Detach{Locator: 0x102})
	n.wants(t, "it goes nowhere", "remove 258", "abandon 258", "gone s1 [258]", "host.detach s1")
	left := h.Others[0]
	h.Others = nil
	n.Quit(h, left, true)
	n.wants(t, "it moved", "remove 513", "redirect 513 to 257")
	n.Quit(h, left, false)
	n.wants(t, "another machine", "remove 513")
	n.Quit(h, store.Place{Locator: 0x150, Router: "r1"}, true)
	n.wants(t, "it left long ago")
}

// An uplink gets what it has, then what it had at the same port, then what it asks for.
func TestWhichLocatorAnUplinkWishesFor(t *testing.T) {
	h := &Host{Host: store.Host{Place: store.Place{Router: "r1", Port: "a", Locator: 1}, Others: []store.Place{{Router: "r1", Port: "b", Locator: 2}}}}
	at := store.Place{Router: "r1", Port: "b"}
	for asked, want := range map[sid.Locator][]sid.Locator{1: {1, 2, 1, 1, 2}, 9: {2, 9, 1, 2}} {
		if got := wishes(h, at, asked); !slices.Equal(got, want) {
			t.Errorf("asks for %d: %v, want %v", asked, got, want)
		}
	}
}

// After a backup was restored who is there counts, and a record only while nobody says otherwise.
func TestARestoredPlaceIsWhoseIsThere(t *testing.T) {
	n := newPlaces()
	n.restored = true
	h := n.host("s1", 0x101, 0x201)
	h.Doubted = true
	n.Evict(0x101, "s1")
	n.wants(t, "by itself")
	n.Evict(0x101, "s2")
	n.wants(t, "by another one", "remove 257")
	if h.Locator != 0x201 || !h.Here || len(h.Others) > 0 {
		t.Errorf("it is at %+v", h.Host)
	}
	n.says("r2", 0x222, plan.HostUp)
	if host, kept := n.Locators.Held(0x222); !kept || host != "" || n.Unclaimed() != 1 {
		t.Errorf("a locator that the backup does not know is kept %v, %d unclaimed", kept, n.Unclaimed())
	}
	if n.ComeTrue(h); h.Doubted || len(n.Of(h)) > 0 {
		t.Errorf("it came, and is doubted or where the backup had it: %v", n.Of(h))
	}
	other := n.host("s3", 0x103)
	other.Doubted = true
	if n.Evict(0x103, "s2"); other.Here {
		t.Error("it is here, and nowhere")
	}
}

func TestJoinsAreBounded(t *testing.T) {
	at := &apiv1.Attachment{LinkLocal: "fe80::1"}
	good := func() *apiv1.Join { return &apiv1.Join{Attachment: at} }
	if err := CheckJoin(good()); err != nil {
		t.Error(err)
	}
	long := string(make([]byte, maxText+1))
	for what, spoil := range map[string]func(*apiv1.Join){
		"boot id":     func(j *apiv1.Join) { j.BootId = long },
		"locator":     func(j *apiv1.Join) { j.Locator = long },
		"address":     func(j *apiv1.Join) { j.Attachment = &apiv1.Attachment{LinkLocal: "2001:db8::1"} },
		"no uplink":   func(j *apiv1.Join) { j.Attachment = nil },
		"MAC address": func(j *apiv1.Join) { j.Attachment = &apiv1.Attachment{LinkLocal: "fe80::1", Mac: []byte{1}} },
		"others":      func(j *apiv1.Join) { j.Others = make([]*apiv1.Attach, Most) },
		"another one": func(j *apiv1.Join) { j.Others = []*apiv1.Attach{{Attachment: &apiv1.Attachment{LinkLocal: "x"}}} },
	} {
		j := good()
		if spoil(j); CheckJoin(j) == nil {
			t.Errorf("%s: not refused", what)
		}
	}
}
