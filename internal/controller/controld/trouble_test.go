package controld

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/saving"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// A router that takes nothing off its stream must cost nobody else anything.
func TestARouterThatDoesNotReadIsDropped(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{QueueLength: 32})
	id := c.create("web")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow := c.narrow().Router(ctx)
	if err := slow.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: &apiv1.RouterJoin{Name: "slow", Service: true}}}); err != nil {
		t.Fatal(err)
	}
	if err := slow.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Neighbours{Neighbours: &apiv1.Neighbours{}}}); err != nil {
		t.Fatal(err)
	}
	c.event("router.join")
	quick := c.router("quick")
	h := c.host("s1", "quick")
	for i := 0; ; i++ {
		h.delta(registration(web(id), i%2 == 0))
		if i%4 > 0 {
			continue
		}
		// Before its own queue is full: on a slow machine the four are told one by one, and each up to twice, when it comes and
		// when it is ready.
		quick.has(web(id), weights{h.locator(): 100})
		if c.metric("streams_dropped_total") > 0 { // which costs more than a change
			break
		}
		if i > 20_000 {
			t.Fatal("20,000 changes did not fill the queue of a router that does not read")
		}
	}
	if e := c.event("router.gone"); e.Subject != "slow" || !strings.Contains(e.Text, session.ErrSlow.Error()) {
		t.Errorf("the event is %v", e)
	}
}

func (c *controller) metric(name string) (value float64) {
	c.t.Helper()
	client, base, err := api.Dial("unix:" + c.socket)
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	return scrape(c.t, client, base, "scaffold_controld_"+name)
}

func scrape(t testing.TB, client *http.Client, base, name string) (value float64) {
	t.Helper()
	answer, err := client.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text strings.Builder
	if err := answer.Write(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			fmt.Sscan(rest, &value)
		}
	}
	return value
}

// A disk that can be full.
type disk struct {
	full    atomic.Bool
	commits atomic.Int64
}

func (d *disk) Commit(context.Context, ...store.Change) error {
	if d.full.Load() {
		return fmt.Errorf("store: %w: make room", store.ErrFull)
	}
	d.commits.Add(1)
	return nil
}

func (d *disk) Probe(ctx context.Context) error { return d.Commit(ctx) }

// onDisk serves a network over the given disk.
func onDisk(t *testing.T, d saving.Committer) *controller {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Config{Socket: dir + "/s"}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	n := newNetwork(newProcess(cfg, new(store.Store), nil), saving.New(d), slog.New(slog.DiscardHandler))
	if err := n.restore(t.Context(), store.State{}); err != nil {
		t.Fatal(err)
	}
	l, err := api.Listen("unix:" + cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	c := &controller{t: t, socket: cfg.Socket}
	serveNetwork(t, n, l)
	t.Cleanup(func() { os.RemoveAll(dir) })
	client, base, _ := api.Dial("unix:" + cfg.Socket)
	c.admin, c.agent = apiv1connect.NewAdminClient(client, base), apiv1connect.NewAgentClient(client, base)
	return c
}

func serveNetwork(t *testing.T, n *network, l net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 3)
	for _, part := range []func(){
		func() { n.loop.Run(ctx, n.flush) },
		func() { n.saver.Run(ctx, n.saved) },
		func() { _ = api.Serve(ctx, n.handler(), l) },
	} {
		go func() { part(); done <- struct{}{} }()
	}
	t.Cleanup(func() {
		cancel()
		for range 3 {
			<-done
		}
	})
}

func TestWithAFullDiskTheNetworkGoesOnAndSaysSo(t *testing.T) {
	t.Parallel()
	d := new(disk)
	c := onDisk(t, d)
	id := c.create("web")
	r := c.router("r1")
	d.full.Store(true)
	h := c.host("s1", "r1") // cannot be saved, and works
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	_, err := c.admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: "more"}))
	if connect.CodeOf(err) != connect.CodeResourceExhausted || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("an order that cannot be saved: %v", err)
	}
	c.event("store.failing")
	status := func() string {
		s, err := c.admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		return s.Msg.Store
	}
	if !strings.Contains(status(), "disk full") {
		t.Errorf("the status says %q of the store", status())
	}
	before := d.commits.Load()
	d.full.Store(false)
	c.event("store.back")
	if d.commits.Load() == before || status() != "" {
		t.Errorf("%d writes since there is room, status %q", d.commits.Load()-before, status())
	}
	c.create("more")
}

// As large as the network has to be: 10,000 services with ten instances each.
func TestTenThousandServicesReachARouterAndOneChangeTouchesOne(t *testing.T) {
	t.Parallel()
	const services, hosts = 10_000, 10
	c := start(t, config.Config{})
	c.kill()
	preload(t, c.data, services)
	c.run(config.Config{})
	r := c.router("r1")
	var all []*fakeHost
	for i := range hosts {
		h := c.host(fmt.Sprint("s", i), "r1")
		triples := make([]sid.Triple, services)
		for s := range triples {
			triples[s] = web(numbered(s))
		}
		h.serves(triples...)
		all = append(all, h)
	}
	c.await("the router knows every instance", func() bool {
		return len(r.targets(web(numbered(services-1)))) == hosts && len(r.targets(web(numbered(0)))) == hosts
	})
	r.mu.Lock()
	if len(r.held.services) != services || len(r.held.resolutions) != 2*services {
		t.Errorf("%d services and %d resolutions, want %d and %d", len(r.held.services), len(r.held.resolutions), services, 2*services)
	}
	r.messages = nil
	r.mu.Unlock()
	one := web(numbered(4711))
	all[3].delta(registration(one, false))
	c.await("one instance is out", func() bool { return len(r.targets(one)) == hosts-1 })
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.messages {
		for _, x := range m.Resolutions {
			if sid.Suffix(x.Suffix) != one.Service.Suffix {
				t.Errorf("one change touched %v", x)
			}
		}
		if len(m.Routes)+len(m.Probes) > 0 {
			t.Errorf("one change touched routes or probes: %v", m)
		}
	}
}

func numbered(i int) sid.ServiceID { return sid.ServiceID{SS: 1, Suffix: sid.Suffix(0x10000 + i)} }

func preload(t *testing.T, data string, services int) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: data, Network: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var changes []store.Change
	for i := range services {
		changes = append(changes, store.PutService(names.Record{Name: fmt.Sprint("web", i), ID: numbered(i), Version: 1}))
	}
	for part := range slices.Chunk(changes, 500) { // each has its own time: a machine that is busy takes more than that for all
		if err := s.Commit(t.Context(), part...); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
