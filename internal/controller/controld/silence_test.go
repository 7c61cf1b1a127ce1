package controld

import (
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/sid"
)

// accused are the services of which the host was told that nobody hears of the one at the locator.
func (h *fakeHost) accused(l sid.Locator) (list []sid.Suffix) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.orders {
		if !slices.Contains(o.GetGone().GetLocators(), uint64(l)) {
			continue
		}
		for _, s := range o.GetGone().Services {
			list = append(list, sid.Suffix(s.Suffix))
		}
	}
	return list
}

// hears waits until the services of which it was told are these, in this order.
func (h *fakeHost) hears(of sid.Locator, ids ...sid.ServiceID) {
	h.t.Helper()
	var want []sid.Suffix
	for _, id := range ids {
		want = append(want, id.Suffix)
	}
	await(h.t, h.name+" hears of the silence", func() bool { return len(h.accused(of)) >= len(want) })
	if got := h.accused(of); !slices.Equal(got, want) {
		h.t.Errorf("%s heard of %v, want %v", h.name, got, want)
	}
}

func (c *controller) patience(name string, d time.Duration) {
	c.t.Helper()
	req := &apiv1.UpdatePolicyRequest{Name: name, Policy: &apiv1.Policy{PatienceMs: uint32(d.Milliseconds())}, Replace: true}
	if _, err := c.admin.UpdatePolicy(c.t.Context(), connect.NewRequest(req)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *controller) becomes(host, state string) {
	c.t.Helper()
	c.await(host+" is "+state, func() bool { return c.hosts()[host].GetState() == state })
}

// twoServe is a network in which s1 and s2 serve web at r1, and c1 is a client.
func twoServe(t *testing.T) (c *controller, r *fakeRouter, id sid.ServiceID, s1, s2, client *fakeHost) {
	c = start(t, config.Config{Lease: long})
	id = c.create("web")
	r = c.router("r1")
	s1, s2, client = c.host("s1", "r1"), c.host("s2", "r1"), c.host("c1", "r1")
	for _, s := range []*fakeHost{s1, s2} {
		s.serves(web(id))
		r.state(s.locator(), "up")
	}
	r.has(web(id), weights{s1.locator(): 100, s2.locator(): 100})
	return c, r, id, s1, s2, client
}

func TestWhoDoesNotAnswerIsToldOfForWhatOthersServe(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Lease: long})
	id, sole := c.create("web"), c.create("db")
	r := c.router("r1")
	h, other := c.host("s1", "r1"), c.host("s2", "r1")
	l := h.locator()
	h.serves(web(id), web(sole))
	other.serves(web(id))
	r.state(l, "up")
	r.has(web(id), weights{l: 100, other.locator(): 100})
	r.has(web(sole), weights{l: 100})
	r.state(l, "suspect")
	other.hears(l, id)
	other.serves(web(id), web(sole)) // now it has somebody to turn to for that, too
	other.hears(l, id, sole)
	r.state(l, "gone") // who asked it in vain, or with success, asks again
	await(t, "s2 hears of both once more", func() bool { return len(other.accused(l)) == 4 })
	r.state(l, "up")
	c.becomes("s1", "up")
	r.state(l, "suspect")
	await(t, "s2 hears of the next silence", func() bool { return len(other.accused(l)) == 6 })
	if got := h.accused(l); len(got) != 0 {
		t.Errorf("the host was told of itself: %v", got)
	}
}

// Somebody whose only other instance does not answer either, or is drained, is not sent there.
func TestNobodyIsSentToWhereNoNewFlowGoes(t *testing.T) {
	t.Parallel()
	c, r, id, h, other, client := twoServe(t)
	r.state(h.locator(), "suspect")
	client.hears(h.locator(), id)
	r.state(other.locator(), "suspect")
	c.becomes("s2", "suspect")
	r.state(other.locator(), "up")
	c.becomes("s2", "up")
	if got := client.accused(other.locator()); len(got) != 0 {
		t.Errorf("the last host that could serve was given up: %v", got)
	}
}

// Of several that a router reports silent at once none is taken for the one that serves instead.
func TestHostsThatFallSilentTogetherAreNotSentToEachOther(t *testing.T) {
	t.Parallel()
	c, r, id, a, b, client := twoServe(t)
	r.states("suspect", a.locator(), b.locator())
	c.becomes("s1", "suspect")
	c.becomes("s2", "suspect")
	r.states("gone", a.locator(), b.locator())
	c.becomes("s1", "gone")
	c.becomes("s2", "gone")
	for _, s := range []*fakeHost{a, b} {
		if got := client.accused(s.locator()); len(got) != 0 {
			t.Errorf("a host was given up for one that is silent too: %v", got)
		}
	}
	r.state(b.locator(), "up")
	client.hears(a.locator(), id)
}

func TestAServicesPatienceIsWaitedFor(t *testing.T) {
	t.Parallel()
	const patience = 300 * time.Millisecond
	c := start(t, config.Config{Lease: long})
	quick, slow := c.create("quick"), c.create("slow")
	c.patience("slow", patience)
	r := c.router("r1")
	h, moves, other := c.host("s1", "r1"), c.host("s2", "r1"), c.host("s3", "r1")
	for _, s := range []*fakeHost{h, moves, other} {
		s.serves(web(quick), web(slow))
		r.state(s.locator(), "up")
	}
	r.has(web(slow), weights{h.locator(): 100, moves.locator(): 100, other.locator(): 100})
	silent := time.Now()
	r.state(moves.locator(), "suspect") // it is back before the patience is over
	other.hears(moves.locator(), quick)
	r.state(moves.locator(), "up")
	c.becomes("s2", "up")
	began := time.Now()
	back := began.Sub(silent) < patience // else this machine took so long that the slow one's flows were given up in between
	r.state(h.locator(), "suspect")
	other.hears(h.locator(), quick)
	r.state(h.locator(), "gone")                                                // changes nothing about that
	await(t, "s3 hears of the first once more, and of the other", func() bool { // which of them comes first is a matter of how long the report took
		of := other.accused(h.locator())
		return slices.Contains(of, slow.Suffix) && len(slices.DeleteFunc(of, func(s sid.Suffix) bool { return s != quick.Suffix })) == 2
	})
	if waited := time.Since(began); waited < patience {
		t.Errorf("the flows of a service with a patience of %v were given up after %v", patience, waited)
	}
	if back {
		other.hears(moves.locator(), quick)
	}
}

func TestWhoAsksHearsWhetherOthersServe(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	h, other := c.host("s1", "r1"), c.host("s2", "r1")
	others := func(besides sid.Locator, proto sid.Proto, port uint16) bool {
		t.Helper()
		answer, err := c.agent.Others(t.Context(), connect.NewRequest(&apiv1.OthersRequest{
			Ss: id.SS, Suffix: uint64(id.Suffix), Proto: uint32(proto), Port: uint32(port), Besides: uint64(besides)}))
		if err != nil {
			t.Fatal(err)
		}
		return answer.Msg.There
	}
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	if others(h.locator(), sid.TCP, 80) || !others(other.locator(), sid.TCP, 80) || others(0, sid.TCP, 81) {
		t.Error("one serves port 80: it was counted for itself, or not for others, or for port 81")
	}
	if others(0, sid.UDP, sid.Port) {
		t.Error("nobody can go on with flows of others, and somebody was said to")
	}
	m := registration(web(id), true)
	m.CanResume = true
	other.delta(m)
	r.has(web(id), weights{h.locator(): 100, other.locator(): 100})
	if !others(h.locator(), sid.TCP, 80) || !others(0, sid.UDP, sid.Port) {
		t.Error("a second one serves and can go on with flows of others: it was not counted")
	}
	c.kill()
	c.run(config.Config{Grace: long})
	if _, err := c.agent.Others(t.Context(), connect.NewRequest(&apiv1.OthersRequest{})); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("a controller that does not know yet who serves answered %v, want unavailable", err)
	}
}

func TestAHostWhoseUplinksFailInTwoWaysIsSilentAtOnce(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Lease: long})
	id := c.create("web")
	r1, r2 := c.linked()
	h, peer := c.host("s1", "r1"), c.host("s2", "r2")
	first, second := h.locator(), h.attach(1, "r2")
	h.serves(web(id))
	peer.serves(web(id))
	r1.state(first, "up")
	r2.state(second, "up")
	r1.has(web(id), weights{first: 100, peer.locator(): 100})
	r1.state(first, "suspect")
	c.event("host.uplink")
	r2.state(second, "gone")
	peer.hears(first, id)
}

func TestWhoLeftALocatorIsNotSomebodyElse(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Lease: long})
	id := c.create("web")
	r1, _ := c.linked()
	h := c.host("s1", "r1")
	before := h.locator()
	h.serves(web(id))
	r1.has(web(id), weights{before: 100})
	moved := c.host("s1", "r2")
	moved.serves(web(id))
	r1.has(web(id), weights{moved.locator(): 100})
	answer, err := c.agent.Others(t.Context(), connect.NewRequest(&apiv1.OthersRequest{
		Ss: id.SS, Suffix: uint64(id.Suffix), Proto: uint32(sid.TCP), Port: 80, Besides: uint64(before)}))
	if err != nil || answer.Msg.There {
		t.Errorf("the only server, elsewhere by now, was taken for another one: %v", err)
	}
}
