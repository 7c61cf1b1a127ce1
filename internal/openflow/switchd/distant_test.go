package switchd

import (
	"net/netip"
	"strings"
	"testing"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/oftables"
)

func TestLinksBehindPlainRoutersAreRead(t *testing.T) {
	want := Link{Switch: "r1", Port: "to-p", Peer: "r2", Via: netip.MustParseAddr("fe80::5")}
	if got, err := ParseLink("switch=r1,peer=r2,port=to-p,via=fe80::5"); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for text, why := range map[string]string{
		"":                                        "none of switch",
		"switch=r1":                               "want switch=NAME",
		"switch=r1,peer=r2,port=p":                "want switch=NAME",
		"switch=R,peer=r2,port=p,via=::1":         "want switch=NAME",
		"switch=r1,peer=r2,port=p,via=10.0.0.1":   "no IPv6 address",
		"switch=r1,peer=r2,port=p,via=ff02::1":    "no IPv6 address",
		"switch=r1,peer=r2,port=p,via=fe80::1%e0": "no IPv6 address",
		"switch=r1,peer=r2,port=p,via=":           "no IPv6 address",
		"switch=r1,colour=red":                    "none of switch",
	} {
		if got, err := ParseLink(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: got %+v, %v, want an error about %q", text, got, err, why)
		}
	}
	if (&Config{Controller: "unix:/x", Links: []Link{want, want}}).Check() == nil {
		t.Error("the same link twice was taken")
	}
}

// A stack of the test's is the plain router: it answers for its address, and knows nothing else.
func TestALinkBehindAPlainRouterIsUpWhileThatAnswers(t *testing.T) {
	d := newDistant([]Link{{Switch: "r1", Port: "to-p", Peer: "r2", Via: hostAddr(9)}})
	n := newFakeNetwork(t, d)
	is := controller.Switch{Name: "r1", Up: true, MAC: [6]byte{2, 0, 0, 0, 0, 1}, LinkLocal: oftables.LinkLocal([6]byte{2, 0, 0, 0, 0, 1}),
		Ports: []controller.Port{{Name: "to-p", Number: 3, Up: true}}}
	n.set(controller.Switch{Name: "other", Up: true})
	n.host("r1", 3, 9)
	n.set(is)
	n.linksAt("r1", func(all []controller.Link) bool {
		return len(all) == 1 && all[0] == controller.Link{Router: "r1", Port: "to-p", Peer: "r2", Via: hostAddr(9),
			MAC: [6]byte{2, 0, 0, 0, 0xff, 9}, Up: true, Cost: 1}
	})
	n.mu.Lock()
	cable := n.cables[end{"r1", 3}]
	delete(n.cables, end{"r1", 3})
	n.mu.Unlock()
	for range missedMost + 1 {
		n.call(d.tick)
	}
	n.linksAt("r1", func(all []controller.Link) bool { return len(all) == 1 && !all[0].Up && all[0].Reason == "hello" })
	n.mu.Lock()
	n.cables[end{"r1", 3}] = cable
	n.mu.Unlock()
	n.call(d.tick)
	n.linksAt("r1", func(all []controller.Link) bool { return len(all) == 1 && all[0].Up })
	is.Up = false
	n.set(is)
	n.call(d.tick)
	n.linksAt("r1", func(all []controller.Link) bool { return len(all) == 1 && all[0].Up })
}

func FuzzAdvertisedTarget(f *testing.F) {
	f.Add(solicitation([6]byte{2, 0, 0, 0, 0, 1}, hostAddr(1), hostAddr(2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, ok := advertisedTarget(b); ok && !a.Is6() {
			t.Errorf("% x: %v", b, a)
		}
	})
}
