package hostd

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/places"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

func joins(r *apiv1.HostReport) bool { return r.GetJoin() != nil }

func attaches(router string) func(*apiv1.HostReport) bool {
	return func(r *apiv1.HostReport) bool { return r.GetAttach().GetAttachment().GetRouter() == router }
}

func prefers(l sid.Locator) func(*apiv1.HostReport) bool {
	return func(r *apiv1.HostReport) bool { return r.GetPrefer().GetLocator() == uint64(l) }
}

var locator1, locator2 = sid.LocatorOf(netip.MustParsePrefix(at1).Addr()), sid.LocatorOf(netip.MustParsePrefix(at2).Addr())

// has waits until the kernel's state of the host has all lines, those that begin with "no " not.
func (l *link) has(t *testing.T, d *nstest.Proc, lines ...string) {
	t.Helper()
	nstest.Wait(t, "what the daemon printed", func() error {
		state := l.kernelState(t)
		for _, want := range lines {
			bare, not := strings.CutPrefix(want, "no ")
			if strings.Contains(state, bare) == not {
				return fmt.Errorf("want %q in the kernel's state:\n%s", want, state)
			}
		}
		return nil
	})
}

// saved waits until the daemon has written down so many places: it does so when it has settled at them.
func (l *link) saved(t *testing.T, want int) {
	t.Helper()
	nstest.Wait(t, "places.json of the daemon", func() error {
		if r := places.Saved(store{l.dir + "/state"}, bootID(), l.host.Inode(t)); r == nil || len(r.Places) != want {
			return fmt.Errorf("saved is %+v, want %d places", r, want)
		}
		return nil
	})
}

// two runs the daemon with both uplinks and waits until it has both places.
func (l *link) two(t *testing.T) *nstest.Proc {
	t.Helper()
	d := l.start(t, twoUplinks)
	l.has(t, d, "fd5c::/32 via", "local fd5d:0:1:101::1 dev up0 table local", "local fd5d:0:1:201::1 dev up1 table local")
	return d
}

// forget drops the reports that came so far.
func (l *link) forget() {
	for len(l.controller.reports) > 0 {
		<-l.controller.reports
	}
}

func twoUplinks(c *Config) { c.Uplinks = []string{"up0", "up1"} }

func TestEachUplinkIsAPlace(t *testing.T) {
	l := newLink(t)
	l.second(t)
	before := l.kernelState(t)
	d := l.two(t)
	l.has(t, d, "iif up0 lookup 23727", "iif up1 lookup 23727", "dev up0 proto 92 src fd5d:0:1:101::1 metric 1025",
		"dev up1 proto 92 src fd5d:0:1:201::1 metric 1026", serviceBy("up0"), serviceBy("up1"))
	s, err := l.local(t).GetHostStatus(context.Background(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	if u := s.Msg.Uplinks; len(u) != 2 || u[0].Locator != at1 || u[0].Router != "r1" || u[1].Locator != at2 || u[1].Router != "r2" {
		t.Errorf("uplinks %v, want %s at r1 and %s at r2", u, at1, at2)
	}
	d.Signal(15)
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
	if after := l.kernelState(t); after != before {
		t.Errorf("left behind:\n%s\nbefore:\n%s", after, before)
	}
}

// serviceBy is how the service prefix is routed by an uplink.
func serviceBy(dev string) string { return "dev " + dev + " proto 92 src fd5e::" }

func TestAFurtherUplinkAttachesOnTheStream(t *testing.T) {
	l := newLink(t)
	d := l.start(t, twoUplinks)
	l.controller.until(t, d, "join", joins)
	l.has(t, d, serviceBy("up0"))
	r2 := l.second(t)
	a := l.controller.until(t, d, "attach at r2", attaches("r2")).GetAttach()
	if a.Attachment.LinkLocal != l.host.LinkLocal(t, "up1").String() || a.Attachment.Port != "down0" || len(a.Attachment.Mac) != 6 || a.Serial == 0 {
		t.Errorf("attach: %v", a)
	}
	l.has(t, d, "fd5d:0:1:201::1/128", serviceBy("up0"))
	r2.router.Down(t, "down0")
	m := l.controller.until(t, d, "detach", func(r *apiv1.HostReport) bool { return r.GetDetach() != nil }).GetDetach()
	if m.Locator != uint64(locator2) || m.To != uint64(locator1) {
		t.Errorf("detach %v to %v, want %v to %v", sid.Locator(m.Locator), sid.Locator(m.To), locator2, locator1)
	}
	l.has(t, d, "no fd5d:0:1:201::1/128", "no iif up1", serviceBy("up0"))
}

// Where the preferred uplink is lost the host goes on at the other one, joins again by it, and returns
// new flows when the preferred one is back.
func TestTheLossOfThePreferredUplink(t *testing.T) {
	l := newLink(t)
	l.second(t)
	d := l.two(t)
	l.forget()
	l.router.Down(t, "down0")
	d.WaitFor(t, fmt.Sprintf("flows move\" from=%v to=%v", locator1, locator2))
	r := l.controller.until(t, d, "word of the loss", func(r *apiv1.HostReport) bool {
		return r.GetDetach() != nil || r.GetJoin().GetAttachment().GetRouter() == "r2"
	})
	if j := r.GetJoin(); j != nil && (j.Locator != at2 || len(j.Others) != 0) { // the session went by r1
		t.Errorf("joins with %v and %v, want %s alone", j.Locator, j.Others, at2)
	}
	if m := r.GetDetach(); m != nil && (m.Locator != uint64(locator1) || m.To != uint64(locator2)) {
		t.Errorf("detaches %v", m)
	}
	l.has(t, d, serviceBy("up1"), "no fd5d:0:1:101::1/128")
	l.router.Up(t, "down0")
	if a := l.controller.until(t, d, "attach at r1", attaches("r1")).GetAttach(); a.Locator != at1 {
		t.Errorf("asks for %q, want the locator that the uplink had, %s", a.Locator, at1)
	}
	l.controller.until(t, d, "r1 is preferred", prefers(locator1))
	l.has(t, d, serviceBy("up0"), "fd5d:0:1:201::1/128")
	if out := d.Output(); strings.Contains(out, fmt.Sprintf("from=%v", locator2)) {
		t.Errorf("flows that are well were moved:\n%s", out)
	}
}

// The same interface leads to another router: a new locator, to which the flows move.
func TestTheUplinkIsPluggedInElsewhere(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.controller.until(t, d, "join", joins)
	l.has(t, d, serviceBy("up0"))
	r2 := newRouter(t, "r2", l.controller)
	if err := l.router.Link().LinkSetNsFd(l.router.Dev(t, "down0"), r2.router.Fd()); err != nil {
		t.Fatal(err)
	}
	d.WaitFor(t, "uplink cannot be used")
	r2.router.Up(t, "down0")
	r2.begin(t)
	j := l.controller.until(t, d, "join at r2", joins).GetJoin()
	if j.Attachment.Router != "r2" || j.Locator != at1 {
		t.Errorf("joins at %s with locator %s, want r2 and the one it had", j.Attachment.Router, j.Locator)
	}
	d.WaitFor(t, fmt.Sprintf("flows move\" from=%v to=%v", locator1, locator2))
	l.has(t, d, serviceBy("up0"), "fd5d:0:1:201::1/128", "no fd5d:0:1:101::1/128")
}

// A link that comes back to the same router: all is put back, and the flows are told.
func TestALinkThatFlaps(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.controller.until(t, d, "join", joins)
	whole := l.running(t)
	for _, flap := range []func(){
		func() { l.host.Down(t, "up0"); d.WaitFor(t, "uplink cannot be used"); l.host.Up(t, "up0") },
		func() { l.host.Down(t, "up0"); l.host.Up(t, "up0") }, // too fast to be seen
	} {
		flap()
		if j := l.controller.until(t, d, "join", joins).GetJoin(); j.Locator != at1 {
			t.Errorf("asks for %s, had %s", j.Locator, at1)
		}
		nstest.Wait(t, "what the daemon printed", func() error {
			if now := l.kernelState(t); now != whole {
				return fmt.Errorf("after down and up:\n%s\nwant:\n%s", now, whole)
			}
			return nil
		})
	}
	if n := strings.Count(d.Output(), "the link of a locator is back"); n < 2 {
		t.Errorf("the flows were told %d times that their link is back, want it for both flaps", n)
	}
}

func TestARestartResumesAllPlaces(t *testing.T) {
	l := newLink(t)
	l.second(t)
	d := l.two(t)
	running := l.running(t)
	l.saved(t, 2)
	d.Kill()
	if after := l.kernelState(t); after != running {
		t.Errorf("the data path did not outlive the daemon:\n%s", after)
	}
	l.forget()
	d = l.start(t, twoUplinks)
	d.WaitFor(t, fmt.Sprintf("took up the host's last place\" locator=%v uplink=up1", locator2))
	j := l.controller.until(t, d, "join", joins).GetJoin()
	if j.Locator != at1 || len(j.Others) != 1 || j.Others[0].Locator != at2 || j.Others[0].Attachment.GetRouter() != "r2" {
		t.Errorf("joins with %s and %v, want both places", j.Locator, j.Others)
	}
	if after := l.kernelState(t); after != running {
		t.Errorf("after the restart:\n%s\nwant:\n%s", after, running)
	}
	if strings.Contains(d.Output(), "flows move") {
		t.Errorf("a restart moved flows:\n%s", d.Output())
	}
}

func TestARefusedPlaceIsAskedForAgain(t *testing.T) {
	l := newLink(t)
	d := l.start(t, twoUplinks)
	l.has(t, d, serviceBy("up0"))
	l.controller.mu.Lock()
	l.controller.refuse = "no locator is free"
	l.controller.mu.Unlock()
	l.second(t)
	d.WaitFor(t, "no locator is free")
	// Not earlier: an interface that comes up may be seen down once more, and an answer to the first request is not heard then.
	l.controller.mu.Lock()
	l.controller.refuse = ""
	l.controller.mu.Unlock()
	l.has(t, d, "fd5d:0:1:201::1/128")
}

// In a network with keys each place comes with a certificate, and a restart knows them.
func TestJoinIsSignedAndCertificatesAreKept(t *testing.T) {
	l := newLink(t)
	l.second(t)
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	l.controller.mu.Lock()
	l.controller.key = key
	l.controller.mu.Unlock()
	d := l.start(t, twoUplinks)
	j := l.controller.until(t, d, "join", joins).GetJoin()
	if err := api.CheckJoin(j, time.Now()); err != nil {
		t.Errorf("%v: %v", err, j)
	}
	l.has(t, d, "fd5d:0:1:101::1/128", "fd5d:0:1:201::1/128")
	var saved places.Record
	nstest.Wait(t, "places.json", func() error {
		s := store{dir: l.dir + "/state"}
		if !s.Read("places.json", &saved) || len(saved.Places) != 2 {
			return fmt.Errorf("%+v: want two places", saved)
		}
		fresh, err := wire.ParseCertificate(saved.Places[0].Certificate)
		if err != nil || fresh.NotAfter-fresh.NotBefore < 3660+2 {
			return fmt.Errorf("%+v, %v: want the second one for the first place, that nobody asked for", fresh, err)
		}
		return nil
	})
	for _, p := range saved.Places {
		if err := saved.CheckCertificate(p.Locator, p.Certificate); err != nil {
			t.Errorf("place %v: %v", p.Locator, err)
		}
	}
	if strings.Contains(d.Output(), "without a certificate") {
		t.Errorf("certificates were refused:\n%s", d.Output())
	}
}

// The state of the versions before has one place.
func TestTheOldStateFileIsRead(t *testing.T) {
	s := store{dir: t.TempDir()}
	old := `{"boot_id":"b","netns":7,"network":"n","domain":"svc","space":` + mustJSON(t, space) + `,"locator":` + mustJSON(t, locator1) +
		`,"uplink":"up0","router":"fe80::1","routers":["fd5d:0:1:100::/64"],"nonlocal_bind":"0","neighbour":{"name":"r1","port":"down0"}}`
	if err := os.WriteFile(s.dir+"/place.json", []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	r := places.Saved(s, "b", 7)
	if r == nil || len(r.Places) != 1 || r.Places[0].Locator != locator1 || r.Places[0].Uplink != "up0" || r.Space != space || r.Nonlocal != "0" {
		t.Errorf("%+v", r)
	}
	if places.Saved(s, "other boot", 7) != nil || places.Saved(s, "b", 8) != nil {
		t.Error("a place of another boot or namespace was taken")
	}
	places.Forget(s)
	if places.Saved(s, "b", 7) != nil {
		t.Error("the place was not forgotten")
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
