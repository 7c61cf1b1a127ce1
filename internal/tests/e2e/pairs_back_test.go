package e2e

import (
	"errors"
	"maps"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestWhatWorksOnceTheControllerIsBackFirst: the controller and another part went away, and the controller is back while the
// other one is not. What works then is what works without the other one. The second server is away all the time: what is left
// out of the rules is missed. A short run tries the daemon whose host serves on.
func TestWhatWorksOnceTheControllerIsBackFirst(t *testing.T) {
	p := thePairs(t)
	without := partNamed("the other server's program")
	for _, b := range parts[1:] {
		if !chosen(b) || b.name == without.name || !nstest.Long() && b.name != "the server's hostd" {
			continue
		}
		p.stored("s1", 2)
		p.take(without)
		for _, x := range []part{parts[0], b} {
			p.take(x)
		}
		p.give(parts[0])
		nstest.Wait(t, p.look(), func() error { return errors.Join(p.sends(), p.isWhole()) })
		not := maps.Clone(bothAway(b, without))
		if b.cut {
			not[oldFlow] = refused // a host that its router gave up is not waited for when the grace is over
		}
		waiting := p.judge(b.name+" and "+without.name+", while the controller is back", time.Now(), not)
		p.back(waiting, b, without)
	}
}

// sends is an error while the controller sends no rules.
func (p *pairs) sends() error {
	s, err := p.admin.GetStatus(p.t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	if err == nil && s.Msg.Settling {
		err = errors.New("the controller waits for hosts and routers of before")
	}
	return err
}

// bothAway is expected, whichever of two parts the table has first.
func bothAway(a, b part) expectation {
	if excepted(b, a) != nil {
		return expected(b, a)
	}
	return expected(a, b)
}

func partNamed(name string) part {
	for _, x := range parts {
		if x.name == name {
			return x
		}
	}
	panic("no part is called " + name)
}
