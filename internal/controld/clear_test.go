package controld

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/store"
)

func TestANetworkKeyInTheClearIsSaid(t *testing.T) {
	among := func(url string) *store.Cluster { return &store.Cluster{Peer: url} }
	for name, c := range map[string]struct {
		cfg  Config
		says string
	}{
		"etcd":                 {Config{Trust: TrustKeys, Etcd: []string{"https://10.0.0.1:2379", "http://10.0.0.2:2379"}}, "etcd=http://10.0.0.2:2379"},
		"etcd without scheme":  {Config{Trust: TrustKeys, Etcd: []string{"e1:2379"}}, "etcd=e1:2379"},
		"controllers":          {Config{Trust: TrustKeys, Cluster: among("http://[2001:db8::1]:23729")}, "--peer-ca"},
		"etcd by TLS":          {Config{Trust: TrustKeys, Etcd: []string{"https://10.0.0.1:2379"}}, ""},
		"etcd on this machine": {Config{Trust: TrustKeys, Etcd: []string{"http://127.0.0.1:2379", "http://[::1]:2379", "http://localhost:2379"}}, ""},
		"controllers by TLS":   {Config{Trust: TrustKeys, Cluster: among("https://10.0.0.1:23729")}, ""},
		"an open network":      {Config{Trust: TrustOpen, Etcd: []string{"http://10.0.0.2:2379"}}, ""},
		"one alone":            {Config{Trust: TrustKeys}, ""},
	} {
		var out bytes.Buffer
		c.cfg.warnInTheClear(slog.New(slog.NewTextHandler(&out, nil)))
		if c.says == "" && out.Len() > 0 || c.says != "" && (!strings.Contains(out.String(), c.says) || !strings.Contains(out.String(), "in the clear")) {
			t.Errorf("%s: said %q, want %q", name, out.String(), c.says)
		}
	}
}
