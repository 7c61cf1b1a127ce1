package controld

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/locators"
	"scaffold.dev/scaffold/internal/controller/controld/places"
	"scaffold.dev/scaffold/internal/controller/controld/pledges"
	"scaffold.dev/scaffold/internal/controller/controld/saving"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A registrar is a network whose clock is the test's: it gives locators and certificates, and does no more.
type registrar struct {
	*network
	here   map[sid.Locator]*places.Host
	clock  time.Time
	state  store.State // as it would be read by the next controller
	stored written
}

// written is a store that notes what is written.
type written []store.Change

func (w *written) Commit(_ context.Context, changes ...store.Change) error {
	*w = append(*w, changes...)
	return nil
}

func (w *written) Probe(context.Context) error { return nil }

func newRegistrar(certify time.Duration) *registrar {
	r := &registrar{here: map[sid.Locator]*places.Host{}, clock: time.Unix(1_800_000_000, 0)}
	cfg := config.Config{Trust: config.TrustKeys, CertifyFor: certify, Space: sid.DefaultSpace()}
	r.begin(cfg)
	return r
}

// begin is a controller that takes over.
func (r *registrar) begin(cfg config.Config) {
	before := r.network
	r.network = newNetwork(newProcess(cfg, new(store.Store), nil), saving.New(&r.stored), slog.New(slog.DiscardHandler))
	r.cfg = cfg
	r.routers.Restore(store.Router{Name: "r1", Block: 1})
	r.pledge(func() time.Time { return r.clock })
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	if before != nil {
		key = before.members.Key()
		r.state.Pledges = append([]store.Pledge{{}}, before.pledges.All()...)
	}
	if err := r.members.Take(key.Seed(), store.Authority{}); err != nil {
		panic(err) // the key is none
	}
	r.certificates.Restore(r.state, true)
}

// asks finds a locator for a host at a port.
func (r *registrar) asks(h *host, name string, port int, asked sid.Locator, taken []store.Place) (sid.Locator, error) {
	p, err := r.places.For(h.at(), name, &apiv1.Attachment{Router: "r1", Port: fmt.Sprint(port)}, asked.String(), taken)
	return p.Locator, err
}

// settle puts a host at a locator, and there alone.
func (r *registrar) settle(name string, l sid.Locator) {
	r.here[l] = &places.Host{Host: store.Host{Name: name, Place: store.Place{Router: "r1", Locator: l}}}
	r.places.Settle(r.here[l])
}

// pledge has given nothing yet, by a clock.
func (r *registrar) pledge(now func() time.Time) {
	r.pledges = pledges.New(now)
	r.certificates = newCertificates(r.network)
}

// block is the first locator of the router's.
func (r *registrar) block() sid.Locator {
	first, _ := r.routers.Block("r1")
	return first
}

// attach gives a host a locator and a certificate for it.
func (r *registrar) attach(name string, port int, asked sid.Locator) (wire.Certificate, error) {
	h := r.hosts[name]
	if h == nil {
		h = &host{}
		h.Name = name
		r.hosts[name] = h
	}
	var taken []store.Place
	for l, at := range r.here {
		if at.Name == name {
			taken = append(taken, store.Place{Locator: l})
		}
	}
	l, err := r.asks(h, name, port, asked, taken)
	if err != nil {
		return wire.Certificate{}, err
	}
	r.settle(name, l)
	return wire.ParseCertificate(r.certificates.For(name, make([]byte, ed25519.PublicKeySize), l))
}

// leave ends a stay, with the quarantine over already: what remains is the certificate.
func (r *registrar) leave(l sid.Locator) {
	r.places.ComeTrue(r.here[l])
	delete(r.here, l)
}

// Whatever comes, goes, is renewed, gets other keys or is taken over by the next controller: at no time do two hosts
// hold certificates for one locator that somebody takes, though his clock is late.
func TestNoLocatorIsCertifiedToTwoHostsAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRegistrar(24 * time.Hour)
		type given struct {
			host  string
			until int64
		}
		certified := map[sid.Locator][]given{}
		note := func(host string, c wire.Certificate) {
			now := r.clock.Unix()
			for _, g := range certified[c.Locator] {
				if late := now - int64(api.JoinSkew.Seconds()); g.host != host && late <= g.until {
					t.Fatalf("%v is certified to %s, and %s has a certificate that is taken for another %d s", c.Locator, host, g.host, g.until-late)
				}
			}
			if left := c.NotAfter - now; left > int64((24 * time.Hour).Seconds()) {
				t.Fatalf("a certificate for %d s", left)
			}
			certified[c.Locator] = append(certified[c.Locator], given{host, c.NotAfter})
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			name := fmt.Sprintf("s%d", rapid.IntRange(0, 40).Draw(t, "host"))
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				if len(r.here) >= 200 {
					continue
				}
				asked := sid.Locator(0)
				if rapid.Bool().Draw(t, "asks") { // also for what is another's
					asked = r.block() + sid.Locator(rapid.IntRange(1, 60).Draw(t, "asked"))
				}
				if c, err := r.attach(name, rapid.IntRange(0, 3).Draw(t, "port"), asked); err == nil {
					note(name, c)
				}
			case 2:
				for l, at := range r.here {
					if at.Name == name {
						r.leave(l)
						break
					}
				}
			case 3:
				for l, at := range r.here {
					if c, err := wire.ParseCertificate(r.certificates.For(at.Name, make([]byte, ed25519.PublicKeySize), l)); err == nil {
						note(at.Name, c)
					}
				}
			case 4:
				r.clock = r.clock.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "passes")))
			case 5:
				switch {
				case rapid.Bool().Draw(t, "takeover"):
					hosts := r.hosts
					r.begin(r.cfg)
					r.hosts = hosts
					for _, at := range r.here {
						r.places.Settle(at)
					}
				default: // forgotten, and another machine of the name
					for l, at := range r.here {
						if at.Name == name {
							r.leave(l)
						}
					}
					r.pledges.Rename(name, name+" (forgotten)")
					for l, all := range certified {
						for i := range all {
							if all[i].host == name {
								certified[l][i].host = name + " (forgotten)"
							}
						}
					}
				}
			}
		}
	})
}

// Who passes by keeps a locator for little more than an hour, and who stays is certified for a day.
func TestCertificatesLastAsLongAsTheHostWasThere(t *testing.T) {
	r := newRegistrar(24 * time.Hour)
	c, err := r.attach("s1", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if valid := c.NotAfter - r.clock.Unix(); valid != 3600 {
		t.Errorf("the first certificate is valid for %d s, want an hour", valid)
	}
	r.leave(c.Locator)
	r.clock = r.clock.Add(time.Hour + api.JoinSkew - time.Second)
	if r.locators.MayHave("s2", r.block(), c.Locator, false) {
		t.Error("another host may have the locator while the certificate is taken")
	}
	r.clock = r.clock.Add(3 * time.Second)
	if !r.locators.MayHave("s2", r.block(), c.Locator, false) {
		t.Error("nobody may have the locator after the certificate has ended")
	}
	if c, err = r.attach("s3", 1, c.Locator); err != nil {
		t.Fatal(err)
	}
	lowest := time.Duration(1 << 62)
	for end := r.clock.Add(72 * time.Hour); r.clock.Before(end); r.clock = r.clock.Add(pledges.NewcomerFor / 5) {
		lowest = min(lowest, time.Unix(c.NotAfter, 0).Sub(r.clock))
		if r.pledges.Due(c.Locator) {
			if c, err = wire.ParseCertificate(r.certificates.For("s3", make([]byte, ed25519.PublicKeySize), c.Locator)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if valid := c.NotAfter - c.NotBefore - int64(api.JoinSkew.Seconds()); valid != 24*3600 {
		t.Errorf("after three days a certificate is valid for %d s, want a day", valid)
	}
	if lowest < pledges.NewcomerFor/3 {
		t.Errorf("for a moment no more than %v were left", lowest)
	}
}

// A member that attaches and leaves without end keeps a few locators from others, and those who roam find theirs.
func TestNoMemberExhaustsARoutersLocators(t *testing.T) {
	for name, quarantined := range map[string]bool{"under keys": false, "in quarantine": true} {
		r := newRegistrar(24 * time.Hour)
		seen := map[sid.Locator]bool{}
		for i := range 1000 {
			l, err := r.asks(r.hosts["liar"], "liar", i, r.block()+sid.Locator(1+i%255), nil)
			if err != nil {
				t.Fatalf("%s: attached %d times: %v", name, i, err)
			}
			if quarantined { // as in an open network
				r.locators.Hold(l, "liar")
			} else {
				r.certificates.For("liar", make([]byte, ed25519.PublicKeySize), l)
			}
			seen[l] = true
		}
		if len(seen) > locators.MostKept {
			t.Errorf("%s: one host keeps %d locators of a router, want at most %d", name, len(seen), locators.MostKept)
		}
		for i := range 200 {
			honest := fmt.Sprintf("s%d", i)
			l, err := r.asks(nil, honest, 1, 0, nil)
			if err != nil {
				t.Fatalf("%s: an honest host, %d: %v", name, i, err)
			}
			r.settle(honest, l)
		}
	}
}

// What a version without pledges has certified is honoured for a day after the upgrade, and once only.
func TestCertificatesOfAVersionBeforeAreHonoured(t *testing.T) {
	r := newRegistrar(24 * time.Hour)
	l := r.block() + 1
	r.pledge(r.pledges.Now)
	state := store.State{Hosts: []store.Host{{Name: "s1", Place: store.Place{Locator: l}}}, Quarantines: []store.Quarantine{{Locator: l + 1, Host: "s2"}}}
	r.certificates.Restore(state, true)
	if r.locators.MayHave("s3", r.block(), l, false) || r.locators.MayHave("s3", r.block(), l+1, false) || !r.locators.MayHave("s1", r.block(), l, false) {
		t.Error("a certificate of before is not honoured")
	}
	if err := r.saver.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.stored, func(c store.Change) bool { return strings.HasSuffix(c.Key(), "/0000000000000000") }) {
		t.Error("the next controller would take all for certified again")
	}
	r.pledge(r.pledges.Now)
	state.Pledges = []store.Pledge{{}}
	r.certificates.Restore(state, true)
	if !r.locators.MayHave("s3", r.block(), l, false) {
		t.Error("without a pledge nobody may have it")
	}
}
