package mobility

import (
	"maps"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
)

// clone makes a second host that has all that the first one has: its edge, its key, what its daemon wrote down. It
// comes up at another place.
func (n *fakeNet) clone(h *fakeHost, at sid.Locator) *fakeHost {
	e := &fakeEdge{net: n, flows: map[host.Tuple]*host.Flow{}, byID: maps.Clone(h.edge.byID), sessions: maps.Clone(h.edge.sessions), quiet: maps.Clone(h.edge.quiet)}
	for t, f := range h.edge.flows {
		g := *f
		e.flows[t] = &g
	}
	c := &fakeHost{edge: e, at: h.at}
	c.start()
	c.Trusts(h.keys)
	n.at[at], c.at = c, at
	c.Moved(h.at, at)
	return c
}

// TestOfAHostAndItsCloneExactlyOneKeepsTheFlow: the one that the peer takes first. The other one's program gets an
// error, and its host swallows or forgets the flow.
func TestOfAHostAndItsCloneExactlyOneKeepsTheFlow(t *testing.T) {
	for what, c := range map[string]struct {
		moved  bool // before it was cloned: its daemon knows the flow
		signed bool
		first  func(n *fakeNet, original *fakeHost)
	}{
		"the clone speaks first":              {first: func(*fakeNet, *fakeHost) {}},
		"the clone, of a flow that moved":     {moved: true, first: func(*fakeNet, *fakeHost) {}},
		"the clone, signed":                   {signed: true, first: func(*fakeNet, *fakeHost) {}},
		"the original moves at the same time": {first: func(n *fakeNet, o *fakeHost) { n.moveTo(o, placeA+5) }},
	} {
		n := newFakeNet(t)
		original, server := n.host(placeA), n.host(placeB)
		if c.signed {
			n.signs(map[*fakeHost][]sid.Locator{original: {placeA, placeC}, server: {placeB}})
		}
		ct, st := n.connect(original, server, 1000, sid.TCP)
		if c.moved {
			n.moveTo(original, placeA+3)
			n.run()
		}
		other := n.clone(original, placeC)
		for _, h := range []*fakeHost{original, other} {
			h.Learn(webID, &apiv1.Policy{Failover: "reset"})
		}
		c.first(n, original)
		n.run()
		n.moveTo(original, original.at) // it is asked again in its place
		n.run()
		served := server.edge.flows[st]
		if served == nil {
			t.Errorf("%s: the server lost the flow", what)
			continue
		}
		var kept []*fakeHost
		for _, h := range []*fakeHost{original, other} {
			if f := h.edge.flows[ct]; f != nil {
				kept = append(kept, h)
			}
		}
		if len(kept) != 1 {
			t.Errorf("%s: %d of the two have the flow", what, len(kept))
			continue
		}
		n.agree(kept[0], server, ct, st)
	}
}
