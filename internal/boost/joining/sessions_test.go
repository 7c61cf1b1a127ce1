package joining

import (
	"net/netip"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/core/tune"
)

func session1(number uint64, sent, received uint64) trunk.SessionStatus {
	return trunk.SessionStatus{Mine: true, Sent: sent, Received: received, Since: time.Unix(1, 0),
		Open: frame.Open{Session: number, Client: netip.MustParseAddrPort("192.0.2.1:40000"), Server: netip.MustParseAddrPort("192.0.2.2:80")}}
}

func TestWhatHasChangedOfSessionsIsTold(t *testing.T) {
	now := time.Unix(100, 0)
	x := newTeller(now)
	all := []trunk.SessionStatus{session1(2, 0, 0), session1(4, 10, 10)}
	each := func(f func(string, trunk.SessionStatus)) {
		for _, s := range all {
			f("w1", s)
		}
		f("w1", trunk.SessionStatus{}) // one that the other agent has opened: that one tells of it, and here is no more to tell yet
	}
	if first := x.look(now, each); len(first.GetChanged()) != 2 || len(first.GetEnded()) != 0 {
		t.Errorf("at first: %v", first)
	}
	now = now.Add(time.Second / 2)
	if again := x.look(now, each); again != nil {
		t.Errorf("nothing has changed: %v", again)
	}
	now = now.Add(time.Second / 2)
	all[1] = session1(4, 1010, 10)
	if c := x.look(now, each).GetChanged(); len(c) != 1 || c[0].Number != 4 || c[0].Sent != 1010 || c[0].SendRate != 2000 || c[0].ReceiveRate != 0 {
		t.Errorf("1,000 bytes in half a second: %v", c)
	}
	now = now.Add(time.Second / 2)
	if c := x.look(now, each).GetChanged(); len(c) != 1 || c[0].SendRate != 0 {
		t.Errorf("it has stopped: %v", c)
	}
	all = all[:1]
	if c := x.look(now, each); len(c.GetChanged()) != 0 || len(c.GetEnded()) != 1 || c.Ended[0].Number != 4 || c.Ended[0].Far != "w1" {
		t.Errorf("it has ended: %v", c)
	}
}

// A controller is told of so many changes at a time, and of all of them in the end.
func TestManySessionsAreToldInParts(t *testing.T) {
	now := time.Unix(100, 0)
	x := newTeller(now)
	left := mostChanges + 10
	each := func(f func(string, trunk.SessionStatus)) {
		for i := range left {
			f("w1", session1(uint64(i+1), 0, 0))
		}
	}
	if n, m := len(x.look(now, each).GetChanged()), len(x.look(now, each).GetChanged()); n != mostChanges || m != 10 {
		t.Errorf("told %d, then %d", n, m)
	}
	left = 0
	if n, m := len(x.look(now, each).GetEnded()), len(x.look(now, each).GetEnded()); n != mostChanges || m != 10 || len(x.told) != 0 {
		t.Errorf("ended %d, then %d; %d stay", n, m, len(x.told))
	}
}

// What a session waits for is told with it by the agent that has opened it, and alone by the other one.
func TestWhatSessionsWaitForIsTold(t *testing.T) {
	now := time.Unix(100, 0)
	x := newTeller(now)
	mine, other := session1(2, 0, 0), session1(2, 0, 0)
	other.Mine = false
	all := []trunk.SessionStatus{mine, other}
	look := func() *apiv1.BoostSessions {
		now = now.Add(time.Second / 2)
		return x.look(now, func(f func(string, trunk.SessionStatus)) {
			for _, s := range all {
				f("w1", s)
			}
		})
	}
	look()
	all[0].Reads, all[1].Writes = tune.Path, tune.Host
	said := look()
	if c := said.GetChanged(); len(c) != 1 || c[0].NearWaits.Reads != "path" || c[0].NearWaits.Writes != "" {
		t.Errorf("its own: %v", said)
	}
	if w := said.GetWaits(); len(w) != 1 || w[0].Near != "w1" || w[0].Number != 2 || w[0].Waits.GetWrites() != "host" {
		t.Errorf("the other's: %v", said)
	}
	if again := look(); again != nil {
		t.Errorf("nothing has changed: %v", again)
	}
	third := session1(6, 0, 0) // which has an address of the agent's at its server's end, and waits for nothing yet
	third.Mine, third.End = false, netip.MustParseAddrPort("203.0.113.3:5000")
	all = append(all, third)
	if w := look().GetWaits(); len(w) != 1 || w[0].Number != 6 || w[0].At != "203.0.113.3:5000" || w[0].Waits == nil {
		t.Errorf("with an end of its own: %v", w)
	}
	all[2].End = all[2].Open.Client // in the client's name
	if w := look().GetWaits(); len(w) != 1 || w[0].At != "" {
		t.Errorf("in the client's name: %v", w)
	}
	all = all[:2]
	look()
	all = nil
	if said = look(); len(said.GetEnded()) != 1 || len(said.GetWaits()) != 1 || said.Waits[0].Waits != nil || len(x.waits) != 0 {
		t.Errorf("both have ended: %v", said)
	}
}
