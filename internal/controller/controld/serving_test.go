package controld

import (
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// eventKinds lists the kinds of the history's events about a subject.
func (c *controller) eventKinds(subject string) (kinds []string) {
	c.t.Helper()
	ctx := c.t.Context()
	stream, err := c.admin.WatchEvents(ctx, connect.NewRequest(&apiv1.WatchEventsRequest{History: 1000}))
	if err != nil {
		c.t.Fatal(err)
	}
	defer stream.Close()
	for stream.Receive() {
		if e := stream.Msg(); e.Subject == subject {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

// refusal waits until the host is told why it may not serve the triple, and gives the latest reason.
func (h *fakeHost) refusal(t sid.Triple, says string) {
	h.t.Helper()
	h.told("that it may not serve: "+says, func(o *apiv1.HostOrder) bool {
		r := o.GetRegistrationRefused()
		return r != nil && r.Registration.Suffix == uint64(t.Service.Suffix) && strings.Contains(r.Reason, says)
	})
}

func (c *controller) keyed(name string, key ed25519.PrivateKey) sid.ServiceID {
	c.t.Helper()
	s, err := c.admin.CreateService(c.t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: name,
		Access: &apiv1.Access{Key: names.FormatKey(key.Public().(ed25519.PublicKey))}}))
	if err != nil {
		c.t.Fatal(err)
	}
	id, _ := sid.ParseServiceID(s.Msg.Sid)
	return id
}

func TestOnlyTheHostsOfAListServe(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r1 := c.router("r1")
	c.apply(files(spec("web", servers("s1"))))
	id, _ := sid.ParseServiceID(c.service("web").Sid)
	s1, s2 := c.host("s1", "r1"), c.host("s2", "r1")
	s1.serves(web(id))
	s2.serves(web(id))
	s2.refusal(web(id), "s2 is not among them")
	r1.has(web(id), map[sid.Locator]uint32{s1.locator(): 100})
	c.apply(files(spec("web", servers("s2"))))
	s1.refusal(web(id), "s1 is not among them")
	r1.has(web(id), map[sid.Locator]uint32{s2.locator(): 100})
	c.apply(files(spec("web")))
	r1.has(web(id), map[sid.Locator]uint32{s1.locator(): 100, s2.locator(): 100})
	if kinds := c.eventKinds("web"); !slices.Contains(kinds, "instance.refused") || !slices.Contains(kinds, "service.access") {
		t.Errorf("events %v", kinds)
	}
}

// Attacker: a local user of a host that may serve, whose own programs may not (`service access --server s1:www-data`).
func TestOnlyTheUsersOfAListServe(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r1 := c.router("r1")
	c.apply(files(spec("web", servers("s1:www-data", "s2"))))
	id, _ := sid.ParseServiceID(c.service("web").Sid)
	s1, s2 := c.host("s1", "r1"), c.host("s2", "r1")
	by := func(user string) *apiv1.Registration {
		r := registration(web(id), true)
		r.User = user
		return r
	}
	s2.delta(by("nobody"))
	r1.has(web(id), map[sid.Locator]uint32{s2.locator(): 100})
	s1.delta(by("nobody"))
	s1.refusal(web(id), "lets programs of www-data serve on s1, and nobody is another")
	s1.delta(by(""))
	s1.refusal(web(id), "its hostd does not tell whose programs serve")
	r1.has(web(id), map[sid.Locator]uint32{s2.locator(): 100})
	s1.delta(by("www-data"))
	r1.has(web(id), map[sid.Locator]uint32{s1.locator(): 100, s2.locator(): 100})
	s1.delta(by("nobody")) // who serves has changed
	r1.has(web(id), map[sid.Locator]uint32{s2.locator(): 100})
}

func TestAServiceThatNamesNobodyIsServedByNobodyWhereThatIsWanted(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Serve: config.ServeNamed})
	r1 := c.router("r1")
	id := c.create("web")
	s1 := c.host("s1", "r1")
	s1.serves(web(id))
	s1.refusal(web(id), "names nobody")
	c.apply(files(spec("web", servers("s1"))))
	r1.has(web(id), map[sid.Locator]uint32{s1.locator(): 100})
}

// A permittee is a host with a key that joined, and signs.
type permittee struct {
	*fakeHost
	key ed25519.PrivateKey
}

func (c *controller) permittee(name string) permittee {
	c.t.Helper()
	key := newKey(c.t)
	h := c.joinHost(signed(join(name, "r1"), key))
	h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	return permittee{h, key}
}

// shows registers the triple with a permit.
func (h permittee) shows(t sid.Triple, p wire.Permit) {
	h.t.Helper()
	r := registration(t, true)
	r.Permit, r.Signature = p.Append(nil), wire.Stand{Challenge: h.joined.Challenge, Triple: t}.Sign(h.key)
	h.delta(r)
}

func (h permittee) public() ed25519.PublicKey { return h.key.Public().(ed25519.PublicKey) }

func TestAServiceWithAKeyIsServedByPermit(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	for _, trust := range []string{config.TrustOpen, config.TrustKeys} {
		c := start(t, config.Config{Trust: trust})
		r1 := c.router("r1")
		key, now := newKey(t), time.Now().Unix()
		id, other := c.keyed("web", key), c.keyed("db", newKey(t))
		s1, s2 := c.permittee("s1"), c.permittee("s2")
		good := wire.Delegate(key, id, s1.public(), now-60, now+3600)
		tampered := good
		tampered.NotAfter += 3600
		for what, try := range map[string]struct {
			who    permittee
			permit wire.Permit
			says   string
		}{
			"of another host":    {s2, good, "for another host"},
			"forged":             {s1, tampered, "not signed by the key"},
			"of another key":     {s1, wire.Delegate(newKey(t), id, s1.public(), now-60, now+60), "of another key"},
			"signed by the host": {s1, wire.Delegate(s1.key, id, s1.public(), now-60, now+60), "of another key"},
			"expired":            {s1, wire.Delegate(key, id, s1.public(), now-60, now-1), "has expired"},
			"early":              {s1, wire.Delegate(key, id, s1.public(), now+600, now+700), "not valid yet"},
			"of another service": {s1, wire.Delegate(key, other, s1.public(), now-60, now+60), "for another service"},
		} {
			try.who.shows(web(id), try.permit)
			try.who.refusal(web(id), try.says)
			if n := len(c.service("web").Instances); n != 0 {
				t.Fatalf("%s: %d instances", what, n)
			}
		}
		s2.delta(registration(web(id), true))
		s2.refusal(web(id), "shows no permit")
		s1.shows(web(id), good)
		r1.has(web(id), map[sid.Locator]uint32{s1.locator(): 100})

		// What s1 sent, sent by another host that says that it is s1: the signature quotes another challenge.
		c2 := c.joinHost(signed(join("s3", "r1"), newKey(t)))
		c2.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
		replay := registration(web(id), true)
		replay.Permit, replay.Signature = good.Append(nil), wire.Stand{Challenge: s1.joined.Challenge, Triple: web(id)}.Sign(s1.key)
		c2.delta(replay)
		c2.refusal(web(id), "for another host")
	}
}

func TestAReplayInALaterSessionIsRefused(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c := start(t, config.Config{}) // open: nobody checks a Join
	c.router("r1")
	key, now := newKey(t), time.Now().Unix()
	id := c.keyed("web", key)
	s1 := c.permittee("s1")
	good := wire.Delegate(key, id, s1.public(), now-60, now+3600)
	s1.shows(web(id), good)
	c.await("s1 serves", func() bool { return len(c.service("web").Instances) == 1 })
	s1.report(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{}}})
	c.await("s1 has left", func() bool { return c.hosts()["s1"] == nil })
	forged := join("s1", "r1")
	forged.Key = s1.public() // anybody knows it
	thief := c.joinHost(forged)
	thief.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	replay := registration(web(id), true)
	replay.Permit, replay.Signature = good.Append(nil), wire.Stand{Challenge: s1.joined.Challenge, Triple: web(id)}.Sign(s1.key)
	thief.delta(replay)
	thief.refusal(web(id), "not signed by the host that the permit names")
}

func TestAnInstanceEndsWithItsPermitAndComesBackWithANewOne(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r1 := c.router("r1")
	key := newKey(t)
	id := c.keyed("web", key)
	s1 := c.permittee("s1")
	now := time.Now().Unix()
	s1.shows(web(id), wire.Delegate(key, id, s1.public(), now-20, now+1))
	r1.has(web(id), map[sid.Locator]uint32{s1.locator(): 100})
	s1.refusal(web(id), "has expired")
	r1.has(web(id), map[sid.Locator]uint32{})
	kinds := c.eventKinds("web")
	if up, warned, down := slices.Index(kinds, "instance.up"), slices.Index(kinds, "permit.expiring"), slices.Index(kinds, "instance.down"); up < 0 || warned < up || down < warned {
		t.Errorf("events %v, want up, a warning, down", kinds)
	}
	s1.shows(web(id), wire.Delegate(key, id, s1.public(), now-20, now+3600))
	r1.has(web(id), map[sid.Locator]uint32{s1.locator(): 100})
}

// accessOf is what the host was told last of who may connect.
func (h *fakeHost) accessOf(id sid.ServiceID) (g resolve.AccessList, told bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.orders {
		for _, p := range o.GetServices().GetEntries() {
			if p.Suffix != uint64(id.Suffix) {
				continue
			}
			if g, told = nil, true; p.Access != nil {
				g = resolve.AccessList{}
				for _, x := range p.Access.Allow {
					g = append(g, resolve.NewPrefix(sid.Locator(x.Locator), int(x.Bits)))
				}
			}
		}
	}
	return g, told
}

func (h *fakeHost) lets(id sid.ServiceID, what string, in, out []sid.Locator) {
	h.t.Helper()
	await(h.t, h.name+" is told that "+what, func() bool {
		g, told := h.accessOf(id)
		for _, l := range in {
			told = told && g.Allows(l)
		}
		for _, l := range out {
			told = told && !g.Allows(l)
		}
		return told
	})
}

func TestWhoMayConnectFollowsHostsThatMove(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Quarantine: 100 * time.Millisecond})
	r1, _ := c.linked()
	c.apply(files(spec("web", allow("c1", "service:front")), spec("front"), spec("open"), spec("shut", allow("none"))))
	ids := map[string]sid.ServiceID{}
	for _, name := range []string{"web", "front", "open", "shut"} {
		ids[name], _ = sid.ParseServiceID(c.service(name).Sid)
	}
	s1, c1, c2, f1 := c.host("s1", "r1"), c.host("c1", "r1"), c.host("c2", "r1"), c.host("f1", "r1")
	s1.serves(web(ids["web"]), web(ids["open"]), web(ids["shut"]))
	here := []sid.Locator{c1.locator()}
	s1.lets(ids["web"], "c1 may", here, []sid.Locator{c2.locator(), f1.locator()})
	s1.lets(ids["open"], "all may", []sid.Locator{c1.locator(), c2.locator()}, nil)
	s1.lets(ids["shut"], "none may", nil, []sid.Locator{c1.locator(), c2.locator()})
	c.await("routers refuse what nobody may", func() bool {
		r1.mu.Lock()
		defer r1.mu.Unlock()
		return r1.held.services[ids["shut"]].GetForbidden() && !r1.held.services[ids["web"]].GetForbidden()
	})
	f1.serves(web(ids["front"]))
	s1.lets(ids["web"], "front's host may", []sid.Locator{f1.locator()}, []sid.Locator{c2.locator()})
	f1.serves()
	s1.lets(ids["web"], "front's host may no more", nil, []sid.Locator{f1.locator()})
	there := c1.attach(1, "r2")
	s1.lets(ids["web"], "c1 may from both places", []sid.Locator{here[0], there}, nil)
	c1.report(&apiv1.HostReport{Report: &apiv1.HostReport_Detach{Detach: &apiv1.Detach{Locator: uint64(here[0]), To: uint64(there)}}})
	s1.lets(ids["web"], "c1 has left its place for good", []sid.Locator{there}, here)
	c.apply(files(spec("web", allow("fd5d:0:1::/48"))))
	s1.lets(ids["web"], "a prefix may", []sid.Locator{there, c2.locator()}, nil)
	c.apply(files(spec("web")))
	s1.lets(ids["web"], "all may", []sid.Locator{1, 2}, nil)
}

func TestAHostThatComesBackWithAnotherKeyDoesNotServeOn(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c := start(t, config.Config{})
	c.router("r1")
	key, now := newKey(t), time.Now().Unix()
	id := c.keyed("web", key)
	s1 := c.permittee("s1")
	s1.shows(web(id), wire.Delegate(key, id, s1.public(), now-60, now+3600))
	c.await("s1 serves", func() bool { return len(c.service("web").Instances) == 1 })
	j := join("s1", "r1")
	api.SignJoin(j, newKey(t), time.Now())
	again := c.joinHost(j)
	again.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	if n := len(c.service("web").Instances); n != 0 {
		t.Errorf("%d instances before it has shown a permit", n)
	}
}
