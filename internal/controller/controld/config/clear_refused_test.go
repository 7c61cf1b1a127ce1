package config

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// A kept is a store that says what it has.
type kept struct {
	testStore
	choice store.Choice
	peers  []store.Peer
}

func (k kept) Choice(context.Context) (store.Choice, error) { return k.choice, nil }
func (k kept) Kept() []store.Peer                           { return k.peers }

const away, awayByTLS, here = "http://192.0.2.1:1", "https://192.0.2.1:1", "http://127.0.0.1:1"

// TestANetworkWithKeysDoesNotBeginInTheClear: nothing is asked or listened to before a new controller is refused whose
// part of the state the others would reach in the clear.
func TestANetworkWithKeysDoesNotBeginInTheClear(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	used := t.TempDir()
	if err := os.MkdirAll(filepath.Join(used, "etcd", "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg  Config
		good bool
	}{
		"clear, nothing said": {Config{Cluster: &store.Cluster{Peer: away}}, false},
		"clear, keys":         {Config{Trust: TrustKeys, Cluster: &store.Cluster{Peer: away}}, false},
		"another one in clear": {Config{Cluster: &store.Cluster{
			Members: []store.Peer{{Name: "c1", URL: awayByTLS}, {Name: "c2", URL: "http://192.0.2.2:1"}}}}, false},
		"clear, and it is said": {Config{PeerClear: true, Cluster: &store.Cluster{Peer: away}}, true},
		"open":                  {Config{Trust: TrustOpen, Cluster: &store.Cluster{Peer: away}}, true},
		"TLS":                   {Config{Cluster: &store.Cluster{Peer: awayByTLS}}, true},
		"this machine alone":    {Config{Cluster: &store.Cluster{Peer: here}}, true},
		"it was there before":   {Config{Data: used, Cluster: &store.Cluster{Peer: away}}, true}, // the store says the rest
	} {
		c.cfg.Name, c.cfg.Socket = "c1", "/s"
		if c.cfg.Data == "" {
			c.cfg.Data = t.TempDir()
		}
		err := c.cfg.Check()
		if c.good != (err == nil) || err != nil && (!errors.Is(err, ErrClear) || !strings.Contains(err.Error(), "--peer-ca") || !strings.Contains(err.Error(), "--peer-clear")) {
			t.Errorf("%s: %v; begins: %v", name, err, c.good)
		}
	}
}

// TestAKeyIsNotPutWhereOthersReadIt: the store says whether there are keys; one that has them in the clear already goes
// on after an upgrade, one that would begin to is refused.
func TestAKeyIsNotPutWhereOthersReadIt(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	keyed, crashed, open, fresh := store.Choice{Begun: true, Key: true, Trust: TrustKeys}, store.Choice{Begun: true, Trust: TrustKeys}, store.Choice{Begun: true}, store.Choice{}
	inClear, byTLS, alone := []store.Peer{{URL: away}}, []store.Peer{{URL: awayByTLS}}, []store.Peer{{URL: "http://localhost:2380"}}
	peer := func(trust string) Config { return Config{Trust: trust, Cluster: &store.Cluster{Peer: away}} }
	etcd := func(trust string) Config { return Config{Trust: trust, Etcd: []string{awayByTLS, away}} }
	for name, c := range map[string]struct {
		cfg  Config
		have kept
		good bool
	}{
		"controllers that ran so":         {peer(""), kept{"", keyed, inClear}, true},
		"one that was taken in just now":  {peer(""), kept{"", fresh, inClear}, true},
		"one that was alone":              {peer(""), kept{"", keyed, alone}, false},
		"one that was reached by TLS":     {peer(""), kept{"", keyed, byTLS}, false},
		"an open one, as it was":          {peer(""), kept{"", open, inClear}, true},
		"an open one, alone before":       {peer(""), kept{"", open, alone}, true},
		"an open one that gets keys":      {peer(TrustKeys), kept{"", open, inClear}, false},
		"the same, and it is said":        {Config{Trust: TrustKeys, PeerClear: true, Cluster: &store.Cluster{Peer: away}}, kept{"", open, inClear}, true},
		"by TLS":                          {Config{Cluster: &store.Cluster{Peer: awayByTLS}}, kept{"", keyed, alone}, true},
		"an etcd that has it":             {etcd(""), kept{"", keyed, nil}, true},
		"an etcd that was to have it":     {etcd(""), kept{"", crashed, nil}, true},
		"an etcd without a network":       {etcd(""), kept{"", fresh, nil}, false},
		"an etcd, open":                   {etcd(""), kept{"", open, nil}, true},
		"an etcd, open, that gets keys":   {etcd(TrustKeys), kept{"", open, nil}, false},
		"an etcd without one, so said":    {Config{EtcdClear: true, Etcd: []string{away}}, kept{"", fresh, nil}, true},
		"an etcd of this machine":         {Config{Etcd: []string{"http://[::1]:2379"}}, kept{"", fresh, nil}, true},
		"an etcd, a new network, open":    {etcd(TrustOpen), kept{"", fresh, nil}, true},
		"controllers, and it is put open": {peer(TrustOpen), kept{"", fresh, nil}, true},
	} {
		_, err := c.cfg.Settle(t.Context(), c.have, slog.New(slog.DiscardHandler))
		if c.good != (err == nil) || err != nil && !errors.Is(err, ErrClear) {
			t.Errorf("%s: %v; begins: %v", name, err, c.good)
		}
	}
}
