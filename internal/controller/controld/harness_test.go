package controld

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/sid"
)

// patience ends a wait for what never comes; nothing is measured by it.
const patience = 20 * time.Second

// A controller under test, in this process, with its state in a directory of the test's.
type controller struct {
	t      testing.TB
	socket string
	data   string
	admin  apiv1connect.AdminClient
	agent  apiv1connect.AgentClient
	stop   context.CancelFunc
	done   chan error
}

// start runs a controller on a fresh directory.
func start(t testing.TB, cfg config.Config) *controller {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl") // t.TempDir has too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &controller{t: t, socket: filepath.Join(dir, "s"), data: filepath.Join(dir, "data")}
	c.run(cfg)
	t.Cleanup(func() { c.kill() })
	return c
}

// run starts it; tests that say nothing of trust have an open network.
func (c *controller) run(cfg config.Config) {
	c.t.Helper()
	cfg.Trust = cmp.Or(cfg.Trust, config.TrustOpen)
	c.untold(cfg)
}

// untold starts it with nothing said but what cfg says.
func (c *controller) untold(cfg config.Config) {
	c.t.Helper()
	cfg.Data, cfg.Socket = c.data, c.socket
	cfg.Network = cmp.Or(cfg.Network, "test")
	ctx, cancel := context.WithCancel(context.Background())
	c.stop, c.done = cancel, make(chan error, 1)
	log := slog.New(slog.NewTextHandler(c.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	done := c.done
	go func() { done <- Run(ctx, cfg, log) }()
	client, base, err := api.Dial("unix:" + c.socket)
	if err != nil {
		c.t.Fatal(err)
	}
	c.admin, c.agent = apiv1connect.NewAdminClient(client, base), apiv1connect.NewAgentClient(client, base)
	c.await("the controller answers", func() bool {
		select {
		case err := <-done:
			c.done = nil // or kill waited for another end
			c.t.Fatalf("the controller ended: %v", err)
		default:
		}
		_, err := c.admin.GetStatus(c.t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
		return err == nil
	})
}

// kill ends the controller and waits until its store is closed.
func (c *controller) kill() {
	if c.done == nil {
		return
	}
	c.stop()
	if err := <-c.done; err != nil {
		c.t.Errorf("the controller ended with %v", err)
	}
	c.done = nil
}

func (c *controller) await(what string, ok func() bool) {
	c.t.Helper()
	await(c.t, what, ok)
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain until %s", patience, what)
		}
	}
}

func (c *controller) create(name string) sid.ServiceID {
	c.t.Helper()
	s, err := c.admin.CreateService(c.t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: name}))
	if err != nil {
		c.t.Fatal(err)
	}
	id, err := sid.ParseServiceID(s.Msg.Sid)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

func (c *controller) service(name string) *apiv1.Service {
	c.t.Helper()
	s, err := c.admin.GetService(c.t.Context(), connect.NewRequest(&apiv1.GetServiceRequest{Name: name}))
	if err != nil {
		c.t.Fatal(err)
	}
	return s.Msg
}

func (c *controller) hosts() map[string]*apiv1.Host {
	c.t.Helper()
	list, err := c.admin.ListHosts(c.t.Context(), connect.NewRequest(&apiv1.ListHostsRequest{}))
	if err != nil {
		c.t.Fatal(err)
	}
	m := make(map[string]*apiv1.Host)
	for _, h := range list.Msg.Hosts {
		m[h.Name] = h
	}
	return m
}

// narrow is a client whose streams take little ahead of their reader.
func (c *controller) narrow() apiv1connect.AgentClient {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	wide := api.DialWith(api.Endpoint{Network: "unix", Address: c.socket}, dial).Transport.(*http.Transport)
	wide.HTTP2.MaxReceiveBufferPerStream = 16 << 10
	return apiv1connect.NewAgentClient(&http.Client{Transport: wide}, api.BaseURL())
}
