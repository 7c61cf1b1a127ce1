package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// An amidException is a pair for which connect() ends in another way when it goes away after the SYN than when it went before.
type amidException struct {
	a, b string
	is   verdict
	why  string
}

var amid = []amidException{
	{"the client's hostd", "the client's uplink", waits, "its SYNs go on in the name of the uplink that is gone"},
	{"the client's hostd", "the client's router", waits, "the same"},
}

// TestConnectionsBegunBeforeTwoGoAway: the first SYNs of connections are lost, and both parts are gone before the next. A
// short run tries the daemons, each alone.
func TestConnectionsBegunBeforeTwoGoAway(t *testing.T) {
	p := thePairs(t)
	for i, a := range parts {
		if !chosen(a) || !nstest.Long() && len(a.daemons) != 1 {
			continue
		}
		p.goesAmid(a, a)
		for _, b := range parts[i+1:] {
			if nstest.Long() && !a.includes(b) {
				p.goesAmid(a, b)
			}
		}
	}
}

// goesAmid takes two parts away, or twice the same one, between the SYN and its answer.
func (p *pairs) goesAmid(a, b part) {
	p.t.Helper()
	both := []part{a, b}
	without := a.name + " and " + b.name
	if a.name == b.name {
		both, without = both[:1], a.name
	}
	want := expected(both...)[newFlow]
	if i := slices.IndexFunc(amid, func(x amidException) bool { return x.a == a.name && x.b == b.name }); i >= 0 {
		want = amid[i].is
	}
	first := [2]string{"c1", uplinks["c1"][0]}
	p.do("cut " + first[0] + " " + first[1])
	k := p.try(newFlow, p.connect)
	nstest.Wait(p.t, p.look(), p.haveBegun)
	for _, x := range both {
		p.take(x)
	}
	if !p.down(first) {
		p.do("heal " + first[0] + " " + first[1])
	}
	if want != waits {
		err := p.end(k, patience)
		if hangs := errors.Is(err, errHangs); want == works && err != nil || want == refused && (err == nil || hangs) {
			p.t.Errorf("without %s, after the SYN: connect(): %v, want: it %s\nlook at: %s", without, err, want.words(newFlow), p.look())
		}
	}
	for _, x := range both {
		p.give(x)
	}
	if want == waits {
		if err := p.end(k, patience); err != nil {
			p.t.Errorf("connect(), begun before %s went away and came back: %v\nlook at: %s", without, err, p.look())
		}
	}
	p.whole()
}

// haveBegun is an error until the client's edge has seen the first SYN of each connection.
func (p *pairs) haveBegun() error {
	r, err := p.local("c1").ListFlows(p.t.Context(), connect.NewRequest(&apiv1.ListFlowsRequest{Service: "pairs"}))
	if err != nil {
		return err
	}
	begun := 0
	for _, f := range r.Msg.Flows {
		if f.Proto == "tcp" && f.State == "connecting" {
			begun++
		}
	}
	if begun < flowsBegun {
		return fmt.Errorf("%d connections have begun, want %d", begun, flowsBegun)
	}
	return nil
}
