package members

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"log/slog"
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/trust"
)

// A fake is what members live among: everything is done at once, in the test's goroutine.
type fake struct {
	later   []func()
	saved   []string // keys of records
	told    []string
	refused int
	unheard []string
	revoked int
	gone    []string
}

func (f *fake) Ask(_ context.Context, run func()) error { run(); return nil }
func (f *fake) Post(run func()) bool                    { run(); return true }
func (f *fake) After(_ time.Duration, run func())       { f.later = append(f.later, run) }
func (f *fake) During(ctx context.Context, _ time.Duration, run func()) {
	f.later = append(f.later, func() {
		if ctx.Err() == nil {
			run()
		}
	})
}
func (f *fake) Tell(kind, _, _ string, _ ...string)  { f.told = append(f.told, kind) }
func (f *fake) Inc(...string)                        { f.refused++ }
func (f *fake) Await(context.Context)                {}
func (f *fake) HostKey(string) ([]byte, bool)        { return nil, false }
func (f *fake) HasRouter(string) bool                { return false }
func (f *fake) HasAgent(string) bool                 { return false }
func (f *fake) Needed(string) error                  { return nil }
func (f *fake) Unaware() string                      { return "" }
func (f *fake) Unheard() []string                    { return f.unheard }
func (f *fake) Settling() bool                       { return false }
func (f *fake) ReachedAt() []string                  { return []string{"192.0.2.1:23728"} }
func (f *fake) TellKeys()                            {}
func (f *fake) TellRevoked(list []*apiv1.Revocation) { f.revoked += len(list) }
func (f *fake) Forget(_ trust.Role, name string)     { f.gone = append(f.gone, name) }

func (f *fake) Later(list ...store.Change) {
	for _, c := range list {
		f.saved = append(f.saved, c.Key())
	}
}

func (f *fake) Do(_ context.Context, check func() (orders.Change, error)) error {
	c, err := check()
	if err == nil {
		f.Later(c.Records...)
		c.Effect()
	}
	return err
}

// keyed are the members of a network with a key and nobody in it.
func keyed(t *testing.T) (*fake, *Members) {
	t.Helper()
	f := &fake{}
	x := New(Config{Network: "test", Name: "c1", Trust: "keys", CredentialFor: time.Hour, CertifyFor: time.Hour, KeyOverlap: time.Minute, Announce: time.Minute},
		Surroundings{Gate: gate.New("c1", "", nil), Network: f, Orders: f, Loop: f, Saver: f, Events: f, Refused: f, Log: slog.New(slog.DiscardHandler)})
	if err := x.Take(newKey(t).Seed(), store.Authority{}); err != nil {
		t.Fatal(err)
	}
	return f, x
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func public(key ed25519.PrivateKey) []byte { return key.Public().(ed25519.PublicKey) }

func (f *fake) issue(t *testing.T, x *Members, role, name string, key []byte) error {
	t.Helper()
	_, err := x.API().Issue(t.Context(), connect.NewRequest(&apiv1.IssueRequest{Role: role, Name: name, Key: key}))
	return err
}

func TestANameHasOneKey(t *testing.T) {
	safety.Test(t, safety.Door)
	f, x := keyed(t)
	first := public(newKey(t))
	for range 2 { // its answer may be lost
		if err := f.issue(t, x, "host", "s1", first); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.issue(t, x, "host", "s1", public(newKey(t))); connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("another key for the same name: %v", err)
	}
	if err := f.issue(t, x, "router", "s1", public(newKey(t))); err != nil {
		t.Errorf("names are those of a role: %v", err)
	}
}

func TestWhoIsForgottenNeverComesBackByItsKey(t *testing.T) {
	safety.Test(t, safety.Door)
	f, x := keyed(t)
	key := public(newKey(t))
	if err := f.issue(t, x, "host", "s1", key); err != nil {
		t.Fatal(err)
	}
	if _, err := x.API().Forget(t.Context(), connect.NewRequest(&apiv1.ForgetRequest{Role: "host", Name: "s1"})); err != nil {
		t.Fatal(err)
	}
	if f.revoked != 1 || !slices.Equal(f.gone, []string{"s1"}) {
		t.Errorf("%d keys were told to be revoked, gone are %v", f.revoked, f.gone)
	}
	if err := f.issue(t, x, "host", "s1", key); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("it comes back by its key: %v", err)
	}
	if err := f.issue(t, x, "host", "s1", public(newKey(t))); err != nil {
		t.Errorf("its name is not free: %v", err)
	}
}

func TestAKeyThatTookAnothersPlaceCountsAndTheOtherEnds(t *testing.T) {
	f, x := keyed(t)
	before, next := public(newKey(t)), public(newKey(t))
	if err := f.issue(t, x, "host", "s1", before); err != nil {
		t.Fatal(err)
	}
	who := gate.Peer{Identity: trust.Identity{Role: trust.Host, Name: "s1", Key: before}}
	if _, c, err := x.rotating(who, next); err != nil {
		t.Fatal(err)
	} else {
		c.Effect()
	}
	if x.Succeeded(trust.Host, "s1", before) || !x.Succeeded(trust.Host, "s1", next) {
		t.Fatal("the key of now is not the one that it joined with")
	}
	if x.Succession("s1", next) == nil || len(x.Keys("s1", next)) != 2 {
		t.Error("the key of before is not the host's any more")
	}
	if _, gone := x.gate.IsRevoked(before); gone {
		t.Error("the key of before ends at once: what it signed is under way")
	}
	for _, run := range f.later {
		run()
	}
	if _, gone := x.gate.IsRevoked(before); !gone || f.revoked != 1 {
		t.Errorf("the key of before counts for ever, %d were told", f.revoked)
	}
}

func TestTheNextKeyWaitsForWhomItNames(t *testing.T) {
	f, x := keyed(t)
	if _, err := x.API().RotateAuthority(t.Context(), connect.NewRequest(&apiv1.RotateAuthorityRequest{})); err != nil {
		t.Fatal(err)
	}
	f.unheard = []string{"s1"}
	now := x.gate.Pin()
	looks := f.later
	f.later = nil
	for _, run := range looks {
		run()
	}
	if len(f.later) == 0 || x.gate.Pin() != now || !x.second.Next {
		t.Error("the next key certifies before all have heard of it")
	}
	if got := x.Former(); !got.Next || !slices.Equal(got.By, []string{"s1"}) {
		t.Errorf("the network waits for %v", got)
	}
	if _, err := x.API().RotateAuthority(t.Context(), connect.NewRequest(&apiv1.RotateAuthorityRequest{})); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("a third key: %v", err)
	}
}

func TestAnOpenNetworkMakesNobodyAMember(t *testing.T) {
	f := &fake{}
	x := New(Config{Network: "test"}, Surroundings{Network: f, Orders: f, Loop: f, Saver: f, Events: f, Refused: f, Log: slog.New(slog.DiscardHandler)})
	if err := f.issue(t, x, "host", "s1", public(newKey(t))); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("an open network gives credentials: %v", err)
	}
	if x.Key() != nil || x.Fresh(gate.Peer{}) != nil || x.RevokedForHosts() != nil {
		t.Error("an open network has keys")
	}
}

func TestNoCredentialIsRenewedAfterItsSession(t *testing.T) {
	f, x := keyed(t)
	session, end := context.WithCancel(t.Context())
	defer end()
	who := gate.Peer{Identity: trust.Identity{Role: trust.Host, Name: "s1", Key: public(newKey(t))}, Leaf: new(x509.Certificate)}
	sent := 0
	x.RenewLater(session, who, func(*apiv1.Credential) { sent++ })
	for range 3 {
		due := f.later
		f.later = nil
		for _, run := range due {
			run()
		}
		if sent == 2 {
			end()
		}
	}
	if sent != 2 || len(f.later) != 0 {
		t.Errorf("%d credentials, %d wait: want one at each of the two times that the session lasted, and none after it", sent, len(f.later))
	}
}
