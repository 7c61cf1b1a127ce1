package config

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/health"
)

func TestANetworkKeyInTheClearIsSaid(t *testing.T) {
	among := func(url string) *store.Cluster { return &store.Cluster{Peer: url} }
	for name, c := range map[string]struct {
		cfg  Config
		says string
	}{
		"etcd":                    {Config{Trust: TrustKeys, Etcd: []string{"https://10.0.0.1:2379", "http://10.0.0.2:2379"}}, "etcd=http://10.0.0.2:2379"},
		"etcd without scheme":     {Config{Trust: TrustKeys, Etcd: []string{"e1:2379"}}, "etcd=e1:2379"},
		"controllers":             {Config{Trust: TrustKeys, Cluster: among("http://[2001:db8::1]:23729")}, "--peer-ca"},
		"etcd by TLS":             {Config{Trust: TrustKeys, Etcd: []string{"https://10.0.0.1:2379"}}, ""},
		"etcd on this machine":    {Config{Trust: TrustKeys, Etcd: []string{"http://127.0.0.1:2379", "http://[::1]:2379", "http://localhost:2379"}}, ""},
		"controllers by TLS":      {Config{Trust: TrustKeys, Cluster: among("https://10.0.0.1:23729")}, ""},
		"an open network":         {Config{Trust: TrustOpen, Etcd: []string{"http://10.0.0.2:2379"}}, ""},
		"one alone":               {Config{Trust: TrustKeys}, ""},
		"it was said that it may": {Config{Trust: TrustKeys, PeerClear: true, EtcdClear: true, Etcd: []string{"e1:2379"}, Cluster: among("http://[2001:db8::1]:23729")}, ""},
	} {
		var out bytes.Buffer
		c.cfg.WarnInTheClear(slog.New(slog.NewTextHandler(&out, nil)))
		if c.says == "" && out.Len() > 0 || c.says != "" && (!strings.Contains(out.String(), c.says) || !strings.Contains(out.String(), "in the clear")) {
			t.Errorf("%s: said %q, want %q", name, out.String(), c.says)
		}
	}
}

func TestAStoreInClearIsNamedWithWhereItIsReached(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		cfg   Config
		peers []string
		want  health.Clear
	}{
		{Config{}, nil, health.Clear{}},
		{Config{Cluster: &store.Cluster{}}, []string{"http://192.0.2.2:1", "http://[2001:db8::1]:1"}, health.Clear{Peers: []string{"http://192.0.2.2:1", "http://[2001:db8::1]:1"}}},
		{Config{Cluster: &store.Cluster{}, Trust: TrustKeys}, []string{"http://192.0.2.2:1"}, health.Clear{Peers: []string{"http://192.0.2.2:1"}, Keys: true}},
		{Config{Cluster: &store.Cluster{}}, []string{"http://127.0.0.1:1", "https://192.0.2.2:1"}, health.Clear{}},
		{Config{Etcd: []string{"https://e1:1", "e2:1", "http://localhost:1", "unix:///x"}}, []string{"http://192.0.2.2:1"}, health.Clear{Etcd: []string{"e2:1"}}},
	} {
		var peers []store.Peer
		for _, url := range x.peers {
			peers = append(peers, store.Peer{URL: url})
		}
		if got := x.cfg.ClearTo(peers); fmt.Sprint(got) != fmt.Sprint(x.want) {
			t.Errorf("%+v, peers %v: %+v, want %+v", x.cfg, x.peers, got, x.want)
		}
	}
}

func TestAnOpenNetworkIsNamedWithWhereItIsReached(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		cfg  Config
		want string
	}{
		{Config{Trust: TrustOpen}, ""},
		{Config{Trust: TrustOpen, Listen: []string{"http://127.0.0.1:1", "[::1]:2", "localhost:3", "unix:/x"}}, ""},
		{Config{Trust: TrustOpen, Listen: []string{"http://192.0.2.1:1", "[::]:2"}}, "192.0.2.1:1 [::]:2"},
		{Config{Trust: TrustKeys, Listen: []string{"[::]:2"}}, ""},
	} {
		if got := strings.Join(x.cfg.OpenTo(), " "); got != x.want {
			t.Errorf("%v %v: reached at %q, want %q", x.cfg.Trust, x.cfg.Listen, got, x.want)
		}
	}
}
