package mobility

import (
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A late is a client's connection at which a segment of the old instance arrives late: after so many looks its last
// acknowledgement takes bytes that the client then forgets.
type late struct{ looks, after int }

func (l *late) look(host.Tuple) (*kick.Socket, bool) {
	l.looks++
	c := &kick.Socket{State: kick.Established, Sequenced: true, SndUna: 100, RcvNxt: 7, BytesAcked: 10, AdvMSS: 1400, MSSClamp: 1400}
	if l.looks > l.after {
		c.SndUna += 50
		c.BytesAcked += 50
	}
	return c, true
}

// What the new instance goes on from is where the client's connection stands when it is made, or there is no connection:
// bytes that the client has freed nobody could send again.
func TestASegmentThatPassedBeforeTheBlockIsNotMissed(t *testing.T) {
	for what, c := range map[string]struct {
		after int // looks
		from  uint32
		stays bool
	}{
		"nothing comes late":               {1000, 100, true},
		"before the connection is read":    {0, 150, true},
		"before an instance is found":      {1, 150, true},
		"when the instance has the flow":   {2, 100, false},
		"when it goes on, as it should do": {3, 100, true},
	} {
		n := newFakeNet(t)
		a, old, b := n.host(placeA), n.host(placeB), n.host(placeC)
		n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, old: {placeB}, b: {placeC}})
		b.engine.SetCapable(webID, true)
		a.Learn(webID, &apiv1.Policy{Failover: "continue"})
		a.tcp.look = (&late{after: c.after}).look
		ct, st := n.connect(a, old, 1000, sid.TCP)
		k, _ := old.find(st)
		old.engine.Fail(old.engine.Deadline(), wire.ProcessDied, k)
		n.toInstance(b)
		var from []uint32
		n.tap = func(p fakePacket) {
			if m, err := wire.Parse(p.payload); err == nil && m.Type() == wire.TypeResume && m.(wire.Resume).Claim.Quote != 0 {
				from = append(from, m.(wire.Resume).Transport.SndUna)
			}
		}
		n.run()
		if len(from) == 0 || from[len(from)-1] != c.from {
			t.Errorf("%s: the instance was to go on from %v, want %d", what, from, c.from)
		}
		v, there := a.engine.View(session.Key{Stable: k.Stable, Role: session.Client})
		if there != c.stays || there && (v.State != session.Bound || v.Peer.Locator != placeC) {
			t.Errorf("%s: the flow stays: %v, %+v", what, there, v)
		}
		if _, served := b.engine.View(session.Key{Stable: k.Stable, Role: session.Server}); served != c.stays {
			t.Errorf("%s: the new instance has it: %v", what, served)
		}
		if got := a.edge.last(ct); !c.stays && got != host.Forget {
			t.Errorf("%s: the edge was told to %v, want forget: the program gets an error", what, got)
		}
	}
}
