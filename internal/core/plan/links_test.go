package plan

import (
	"fmt"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
)

// between is r0 - r1, and r2 that nobody is linked to. r1 and r2 are service routers.
func between(t *testing.T) *Plan {
	t.Helper()
	p := New(sid.DefaultSpace())
	for i := range 3 {
		p.SetRouter(Router{Name: routerName(i), Service: i > 0, Locator: sid.DefaultSpace().Locator(uint16(i+1) << 8)})
	}
	p.SetLinks("r0", []Link{{Port: "a", Peer: "r1", PeerPort: "b", Via: linkLocal(2), Cost: 5}})
	p.SetLinks("r1", []Link{{Port: "b", Peer: "r0", PeerPort: "a", Via: linkLocal(1), Cost: 5}})
	p.Drain()
	return p
}

// out are the ports by which routes of a router leave.
func out(p *Plan, router string) string {
	ports := map[string]bool{}
	for _, r := range p.Snapshot(router).Routes {
		ports[r.Port] = true
	}
	return fmt.Sprint(ports)
}

// Attack: what greets r0 at the port dev says that it is the service router r2, nearer than any other; r2 says nothing of it.
// The same for r1, to which there is a link by another port.
func TestALinkThatOneEndAloneReportsIsNone(t *testing.T) {
	for name, claimed := range map[string]Link{
		"a router that has no links":                  {Port: "dev", Peer: "r2", PeerPort: "x", Via: linkLocal(0x666), Cost: 1},
		"a router that has no links, by no port":      {Port: "dev", Peer: "r2", Via: linkLocal(0x666), Cost: 1},
		"a neighbour, by another port":                {Port: "dev", Peer: "r1", PeerPort: "x", Via: linkLocal(0x666), Cost: 1},
		"a neighbour, by the port of the true link":   {Port: "dev", Peer: "r1", PeerPort: "b", Via: linkLocal(0x666), Cost: 1},
		"a neighbour, as the other end of a true one": {Port: "dev", Peer: "r1", PeerPort: "a", Via: linkLocal(0x666), Cost: 1},
	} {
		p := between(t)
		p.SetLinks("r0", []Link{{Port: "a", Peer: "r1", PeerPort: "b", Via: linkLocal(2), Cost: 5}, claimed})
		p.Drain()
		if got := out(p, "r0"); got != "map[a:true]" {
			t.Errorf("%s: r0 sends by %s, want by a alone", name, got)
		}
	}
}

// Attack: a router that is a member says that it has links to everybody. Those who do not say so are not its neighbours, and
// what they send goes where it went.
func TestAMemberThatClaimsLinksToAllGetsNobodysPackets(t *testing.T) {
	safety.Test(t, safety.Door)
	p := between(t)
	p.SetLinks("r2", []Link{{Port: "x", Peer: "r0", PeerPort: "a", Cost: 0}, {Port: "y", Peer: "r1", PeerPort: "b", Cost: 0}, {Port: "z", Peer: "r0", Cost: 0}})
	if steps := p.Drain(); len(steps) != 0 {
		t.Errorf("a claim changed routes: %+v", steps)
	}
}

// A link is there as soon as the second end says so, and gone as soon as one does not any more.
func TestALinkLastsWhileBothEndsReportIt(t *testing.T) {
	p := between(t)
	p.SetLinks("r0", []Link{{Port: "a", Peer: "r1", PeerPort: "b", Via: linkLocal(2), Cost: 5}, {Port: "c", Peer: "r2", PeerPort: "d", Via: linkLocal(3), Cost: 1}})
	p.Drain()
	p.SetLinks("r2", []Link{{Port: "d", Peer: "r0", PeerPort: "c", Via: linkLocal(1), Cost: 1}})
	p.Drain()
	if got := out(p, "r0"); got != "map[a:true c:true]" {
		t.Errorf("both ends report the link: r0 sends by %s, want by a and c", got)
	}
	p.SetLinks("r2", nil)
	p.Drain()
	if got := out(p, "r0"); got != "map[a:true]" {
		t.Errorf("one end does not report the link any more: r0 sends by %s, want by a alone", got)
	}
}
