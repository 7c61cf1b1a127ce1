package certificates

import (
	"context"
	"crypto/ed25519"
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/pledges"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// a network of one host at the locators 1 and 2, that left 2 and 3 lately, as certificates see it.
type network struct {
	key   ed25519.PrivateKey
	host  ed25519.PublicKey
	now   time.Time
	sent  []*apiv1.Attached
	saved int
	again func() // what is to be done later
	after time.Duration
}

type members struct{ *network }

func (m members) Key() ed25519.PrivateKey          { return m.key }
func (m members) Succession(string, []byte) []byte { return []byte("succession") }

func (n *network) Key(string) []byte                    { return n.host }
func (n *network) Locators(string) []sid.Locator        { return []sid.Locator{1, 2} }
func (n *network) Left(string) []sid.Locator            { return []sid.Locator{2, 3} }
func (n *network) Attached(_ string, a *apiv1.Attached) { n.sent = append(n.sent, a) }
func (n *network) Later(changes ...store.Change)        { n.saved += len(changes) }
func (n *network) During(_ context.Context, d time.Duration, f func()) {
	n.after, n.again = d, f
}

func newCertificates(t *testing.T) (*Certificates, *network) {
	t.Helper()
	n := &network{now: time.Unix(1_800_000_000, 0)}
	var err error
	if _, n.key, err = ed25519.GenerateKey(nil); err != nil {
		t.Fatal(err)
	}
	if n.host, _, err = ed25519.GenerateKey(nil); err != nil {
		t.Fatal(err)
	}
	p := pledges.New(func() time.Time { return n.now })
	return New(Config{Longest: 24 * time.Hour, Pledges: p, Hosts: n, Members: members{n}, Saver: n, Loop: n}), n
}

// What is given counts from before its time, for clocks that are late, and is pledged.
func TestACertificateIsPledged(t *testing.T) {
	x, n := newCertificates(t)
	c, err := wire.ParseCertificate(x.For("s1", n.host, 1))
	if err != nil || c.Locator != 1 || c.NotBefore != n.now.Add(-api.JoinSkew).Unix() || c.NotAfter != n.now.Add(pledges.NewcomerFor).Unix() {
		t.Errorf("%v: %+v", err, c)
	}
	if n.saved != 1 || x.Pledges.Holder(1) != "s1" {
		t.Errorf("%d records, pledged to %q", n.saved, x.Pledges.Holder(1))
	}
	if x.For("s1", nil, 1) != nil {
		t.Error("a host without a key has a certificate")
	}
	if n.key = nil; x.For("s1", n.host, 1) != nil {
		t.Error("an open network certifies")
	}
}

// Hosts get fresh ones before those that they have end, and all at once when the network's key is another one.
func TestFreshCertificates(t *testing.T) {
	x, n := newCertificates(t)
	sent := func() (list []string) {
		for _, a := range n.sent {
			if _, err := wire.ParseCertificate(a.Certificate); err != nil || a.Succession == nil {
				t.Errorf("%v: %v", err, a)
			}
			list = append(list, a.Locator)
		}
		n.sent = nil
		return list
	}
	one, two, three := sid.Locator(1).String(), sid.Locator(2).String(), sid.Locator(3).String()
	x.Renew("s1")
	if got := sent(); !slices.Equal(got, []string{one, two, three}) {
		t.Errorf("renewed are %q", got)
	}
	x.RenewLeft("s1")
	if got := sent(); !slices.Equal(got, []string{three}) {
		t.Errorf("of what it left %q, want that where it is not", got)
	}
	x.During(t.Context(), "s1")
	if n.after != pledges.NewcomerFor/renewals {
		t.Errorf("it is looked after %v", n.after)
	}
	if n.again(); len(n.sent) > 0 {
		t.Errorf("fresh ones are replaced: %v", n.sent)
	}
	n.now = n.now.Add(pledges.NewcomerFor / 2)
	n.again()
	if got := sent(); !slices.Equal(got, []string{one, two}) {
		t.Errorf("after half of their time %q are replaced", got)
	}
	n.again, n.key = nil, nil
	if x.During(t.Context(), "s1"); n.again != nil {
		t.Error("in an open network it is looked again and again")
	}
}

// An upgrade finds no pledges: what a version before gave counts for as long as it could.
func TestWhatIsTakenUp(t *testing.T) {
	state := store.State{Hosts: []store.Host{{Name: "s1", Place: store.Place{Locator: 1}}}}
	for keyed, want := range map[bool]string{true: "s1", false: ""} {
		x, n := newCertificates(t)
		if x.Restore(state, keyed); x.Pledges.Holder(1) != want || (n.saved > 0) != keyed {
			t.Errorf("keys %v: pledged to %q, %d records", keyed, x.Pledges.Holder(1), n.saved)
		}
	}
}
