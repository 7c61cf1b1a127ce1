package mobility

import (
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// connecting makes a flow of c that is not answered yet, moves c, and has s answer the attempt that left then. The
// event of that is lost: nobody read it.
func (n *fakeNet) answeredUnheard(c, s *fakeHost, p sid.Proto) (ct, st host.Tuple) {
	ct, st = n.connect(c, s, 1000, p)
	f, served := c.edge.flows[ct], s.edge.flows[st]
	f.State, f.WirePeer = host.Connecting, ct.Remote
	n.moveTo(c, c.at+1)
	n.run()
	at := c.edge.steps[len(c.edge.steps)-1].Local
	delete(s.edge.flows, st)
	f.ID, f.Locator, f.Stable, f.State = at.Socket, at.Locator, at.IP(), host.BoundFlow
	f.WirePeer = netip.AddrPortFrom(served.Locator.Addr(uint64(served.ID)), ct.Remote.Port())
	st.Remote = netip.AddrPortFrom(at.IP(), 1000)
	served.Tuple, served.Peer, served.Stable, served.WirePeer = st, st.Remote, at.IP(), st.Remote
	s.edge.flows[st], s.edge.byID[served.ID] = served, st
	return ct, st
}

func TestAnAnswerThatNobodyReadIsFoundWhenTheServerFails(t *testing.T) {
	for p, want := range map[sid.Proto]host.Verb{sid.TCP: host.Forget, sid.UDP: host.Unbind} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		ct, _ := n.answeredUnheard(a, b, p)
		b.Shed(wire.ProcessDied, func(host.Flow) bool { return true })
		n.run()
		if got := a.edge.last(ct); got != want {
			t.Errorf("%v: the edge was told to %v, want %v", p, got, want)
		}
	}
}

func TestAnAnswerThatNobodyReadIsFoundInTime(t *testing.T) {
	for what, forgets := range map[string]bool{"an attempt of the flow": false, "one that was never heard of": true} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		ct, st := n.answeredUnheard(a, b, sid.TCP)
		if forgets {
			other := a.edge.flows[ct].Locator.Addr(1 << 63)
			a.edge.flows[ct].Stable = other
		}
		a.forget(a.edge, nil)
		n.run()
		v, there := a.engine.View(a.byTuple[ct])
		if !there || v.State != session.Bound || v.Stable != a.edge.flows[ct].Stable || a.engine.Len() != 1 {
			t.Errorf("%s: %+v of %d flows", what, v, a.engine.Len())
		}
		if !forgets {
			n.agree(a, b, ct, st)
		}
		a.Settle(time.Now())
	}
}
