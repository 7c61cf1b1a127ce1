package config

import (
	"errors"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// TestWhereAnOpenNetworkListens: on loopback unless an address is said, never on all; one of before this rule goes on
// where it was.
func TestWhereAnOpenNetworkListens(t *testing.T) {
	loopback, all := strings.Join(loopbackListen, " "), DefaultListen
	for _, c := range []struct {
		what   string
		trust  string
		before bool
		said   []string
		unsaid bool
		want   string // "" refused
	}{
		{"keys", TrustKeys, false, nil, true, all},
		{"keys, an address", TrustKeys, false, []string{"192.0.2.1:7"}, false, "192.0.2.1:7"},
		{"open", TrustOpen, false, nil, true, loopback},
		{"open, an address", TrustOpen, false, []string{"192.0.2.1:7"}, false, "192.0.2.1:7"},
		{"open, the socket alone", TrustOpen, false, nil, false, "none"},
		{"open, all", TrustOpen, false, []string{"[::]:7"}, false, ""},
		{"open, all of IPv4", TrustOpen, false, []string{"http://0.0.0.0:7"}, false, ""},
		{"open, no address", TrustOpen, false, []string{":7"}, false, ""},
		{"open before", TrustOpen, true, nil, true, all},
		{"open before, all", TrustOpen, true, []string{"[::]:7"}, false, "[::]:7"},
	} {
		cfg := Config{Trust: c.trust, Listen: c.said, ListenByTrust: c.unsaid}
		got, err := cfg.listensAt(c.before)
		if text := strings.Join(got, " "); (err != nil) != (c.want == "") || err == nil && text != strings.TrimPrefix(c.want, "none") {
			t.Errorf("%s: listens at %q, %v; want %q", c.what, text, err, c.want)
		}
	}
}

// TestControllersOfOneNetworkAgreeOnItsKeys: one of several that was told otherwise than what the others stored ends,
// also where it only stands by.
func TestControllersOfOneNetworkAgreeOnItsKeys(t *testing.T) {
	safety.Test(t, safety.Door)
	fresh, open, former, keyed := store.State{}, store.State{Epoch: 3, Trust: TrustOpen}, store.State{Epoch: 3}, store.State{Epoch: 3, Key: make([]byte, 32)}
	crashed := store.State{Epoch: 1, Trust: TrustKeys} // before it saved the key
	for _, c := range []struct {
		trust string
		said  bool
		state store.State
		good  bool
	}{
		{TrustOpen, true, fresh, true}, {TrustOpen, true, open, true}, {TrustOpen, false, former, true},
		{TrustOpen, true, keyed, false}, {TrustOpen, true, crashed, false},
		{TrustKeys, false, fresh, true}, {TrustKeys, false, keyed, true}, {TrustKeys, false, crashed, true},
		{TrustKeys, false, open, false}, {TrustKeys, false, former, false}, // nobody said that it is to get a key
		{TrustKeys, true, open, true}, {TrustKeys, true, former, true},
	} {
		cfg := Config{Trust: c.trust, trustSaid: c.said}
		if err := cfg.Disagrees(testStore("DIR"), c.state); (err == nil) != c.good || err != nil && !errors.Is(err, ErrTrust) {
			t.Errorf("--trust %s (said: %v) on %+v: %v", c.trust, c.said, c.state, err)
		}
	}
	// One that was told nothing is not stopped for good (exit code 2): started again it has keys.
	if err := (&Config{Trust: TrustOpen}).Disagrees(testStore("DIR"), keyed); !errors.Is(err, ErrKeysMeanwhile) || errors.Is(err, ErrTrust) {
		t.Errorf("open, told nothing, on %+v: %v", keyed, err)
	}
}

type testStore string

func (s testStore) String() string { return string(s) }
