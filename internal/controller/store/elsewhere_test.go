package store

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// serveEtcd runs an etcd that listens, at the address given or one of its choice.
func serveEtcd(t *testing.T, dir, address string) (endpoint string, stop func()) {
	t.Helper()
	at := url.URL{Scheme: "http", Host: address}
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ListenPeerUrls, cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, []url.URL{at}, []url.URL{at}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	<-e.Server.ReadyNotify()
	return e.Clients[0].Addr().String(), e.Close
}

func reach(t *testing.T, network, endpoint string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Endpoints: []string{endpoint}, Network: network, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Two networks share an etcd that is away for a while.
func TestAnEtcdElsewhereServesSeveralNetworksAndMayBeAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	endpoint, stop := serveEtcd(t, dir, "127.0.0.1:0")
	a, b := reach(t, "a", endpoint), reach(t, "ab", endpoint)
	lead(t, a)
	lead(t, b)
	for range 2 {
		if _, err := a.Begin(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	changes := []Change{}
	for _, name := range strings.Fields(strings.Repeat("h ", 2*elsewhereOps)) {
		changes = append(changes, PutHost(Host{Name: name + string(rune('0'+len(changes)))}))
	}
	if err := a.Commit(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(t.Context(), PutHost(Host{Name: "other"})); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := a.Commit(t.Context(), PutHost(Host{Name: "meanwhile"})); err == nil || !strings.Contains(err.Error(), endpoint) {
		t.Errorf("a write while etcd is away: %v, want an error that names %s", err, endpoint)
	}
	_, stop = serveEtcd(t, dir, endpoint)
	defer stop()
	var err error
	for range 10 { // the client finds it again in its own time
		if errors.Is(err, ErrNotLeader) {
			lead(t, a) // its lease ended meanwhile
		}
		if err = a.Commit(t.Context(), PutHost(Host{Name: "after"})); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("etcd is back: %v", err)
	}
	got, err := reach(t, "a", endpoint).Load(t.Context())
	if err != nil || got.Epoch != 2 || len(got.Hosts) < len(changes)+1 || len(got.Hosts) > len(changes)+2 {
		t.Errorf("epoch %d, %d hosts, %v; want 2 and %d", got.Epoch, len(got.Hosts), err, len(changes)+1)
	}
	if other, err := b.Load(t.Context()); err != nil || len(other.Hosts) != 1 {
		t.Errorf("the other network has %v, %v; want its one host", other.Hosts, err)
	}
}

func TestARestoreThatIsInterruptedDoesNotBlameEtcd(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	cfg := Config{Network: "n", Endpoints: []string{"127.0.0.1:1"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if err := Restore(ctx, cfg, &Backup{BackupHeader: BackupHeader{Network: "n"}}); !errors.Is(err, context.Canceled) || errors.Is(err, ErrAway) {
		t.Errorf("%v: want that it was interrupted", err)
	}
}

func TestAnEtcdThatIsNotThereIsSaid(t *testing.T) {
	t.Parallel()
	s := reach(t, "a", "127.0.0.1:1")
	_, err := s.Begin(t.Context(), "")
	if err == nil || !errors.Is(err, ErrAway) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v: want that nobody answers at 127.0.0.1:1", err)
	}
}
