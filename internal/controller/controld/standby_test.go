package controld

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/tests/freeport"
	"scaffold.dev/scaffold/internal/trust"
)

// pair runs two controllers with keys that share a state, and returns where the one that leads is and where the one
// that stands by.
func pair(t *testing.T, cfg config.Config) (leads *controller, at, standby string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	members := []store.Peer{{Name: "c1", URL: "http://" + freeport.Address(t)}, {Name: "c2", URL: "http://" + freeport.Address(t)}}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, len(members))
	t.Cleanup(func() {
		stop()
		for range members {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	ports := map[string]string{}
	for _, m := range members {
		cfg := cfg
		cfg.Name, cfg.Network, cfg.Trust, cfg.Data, cfg.Socket = m.Name, "test", config.TrustKeys, filepath.Join(dir, m.Name), filepath.Join(dir, m.Name+".s")
		cfg.Cluster = &store.Cluster{Members: members, Peer: m.URL}
		ports[m.Name] = freeport.Address(t)
		cfg.Listen = []string{"https://" + ports[m.Name]}
		go func() {
			ended <- Run(ctx, cfg, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
		}()
	}
	var leader string
	await(t, "one leads and one stands by", func() bool {
		client, base, err := api.Dial("unix:" + filepath.Join(dir, "c1.s"))
		if err != nil {
			return false
		}
		defer client.CloseIdleConnections()
		list, err := apiv1connect.NewAdminClient(client, base).ListControllers(t.Context(), connect.NewRequest(&apiv1.ListControllersRequest{}))
		states := map[string]int{}
		if err == nil {
			for _, c := range list.Msg.Controllers {
				if states[c.State]++; c.State == "leads" {
					leader = c.Name
				}
			}
		}
		return states["leads"] == 1 && states["stands by"] == 1
	})
	other := map[string]string{"c1": "c2", "c2": "c1"}[leader]
	c := &controller{t: t, socket: filepath.Join(dir, leader+".s")}
	await(t, "the other one has the network's key", func() bool {
		conn, err := tls.Dial("tcp", ports[other], &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	client, base, err := api.Dial("unix:" + c.socket)
	if err != nil {
		t.Fatal(err)
	}
	c.admin, c.agent = apiv1connect.NewAdminClient(client, base), apiv1connect.NewAgentClient(client, base)
	return c, ports[leader], ports[other]
}

// Who calls a controller that stands by is to the one that leads who he is, and may what he may; who was forgotten is
// refused by the one that stands by itself, which learns the network's next key, too.
func TestAControllerThatStandsByKnowsWhoCalls(t *testing.T) {
	c, at, by := pair(t, config.Config{Announce: time.Second})
	ctx := t.Context()
	c.create("web")
	host, key := c.member(by, "host", "s1") // the token is redeemed where somebody stands by
	admin, _ := c.member(by, "admin", "ann")
	asHost, asAdmin := call(t, by, host.Config()), call(t, by, admin.Config())
	if _, err := asHost.admin.ListServices(ctx, connect.NewRequest(&apiv1.ListServicesRequest{})); err != nil {
		t.Errorf("a host cannot read: %v", err)
	}
	_, err := asHost.admin.CreateService(ctx, connect.NewRequest(&apiv1.CreateServiceRequest{Name: "x"}))
	refusedWith(t, "a host creates a service", err, connect.CodePermissionDenied, "host s1 may not")
	_, err = asHost.admin.SetWeight(ctx, connect.NewRequest(&apiv1.SetWeightRequest{Name: "web", Host: "s2", Weight: 3}))
	refusedWith(t, "a host weighs another", err, connect.CodePermissionDenied, "host s1 may not")
	if _, err := asAdmin.admin.CreateService(ctx, connect.NewRequest(&apiv1.CreateServiceRequest{Name: "x"})); err != nil {
		t.Errorf("an administrator cannot create a service: %v", err)
	}
	// What somebody writes into the headers that controllers send each other is nothing.
	forged := connect.NewRequest(&apiv1.CreateServiceRequest{Name: "y"})
	forged.Header().Set(gate.OnBehalf, "local")
	forged.Header().Set(gate.HandedOn, "c9")
	_, err = call(t, at, host.Config()).admin.CreateService(ctx, forged)
	refusedWith(t, "a host says that it is a controller", err, connect.CodePermissionDenied, "host s1 may not")
	// The address that a host is seen at is its own, not that of who handed the call on.
	c.router("r1")
	ask := &apiv1.TunnelRequest{Host: "s1", Uplink: "sct0"}
	api.SignTunnel(ask, key, time.Now())
	tunnel := connect.NewRequest(ask)
	tunnel.Header().Set(gate.SeenAt, "[2001:db8::9]:1")
	e, err := api.ParseEndpoint("https://" + by)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := api.DialWith(e.As(host.Config()), (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext)
	t.Cleanup(elsewhere.CloseIdleConnections)
	if seen, err := apiv1connect.NewAgentClient(elsewhere, api.BaseURL()).Tunnel(ctx, tunnel); err != nil || seen.Msg.Seen != "127.0.0.2" {
		t.Errorf("seen at %v, %v; want 127.0.0.2", seen, err)
	}
	own := func(who *trust.Member) error { // what the one that stands by answers itself
		_, err := call(t, by, who.Config()).admin.ListControllers(ctx, connect.NewRequest(&apiv1.ListControllersRequest{}))
		return err
	}
	if err := own(host); err != nil {
		t.Error(err)
	}
	if _, err := c.local().trust.Forget(ctx, connect.NewRequest(&apiv1.ForgetRequest{Role: "host", Name: "s1"})); err != nil {
		t.Fatal(err)
	}
	c.await("the one that stands by refuses who was forgotten", func() bool { return connect.CodeOf(own(host)) == connect.CodeUnauthenticated })
	refusedWith(t, "forgotten", own(host), connect.CodeUnauthenticated, "was revoked")

	if _, err := c.local().trust.RotateAuthority(ctx, connect.NewRequest(&apiv1.RotateAuthorityRequest{})); err != nil {
		t.Fatal(err)
	}
	former := c.certifies("former")[0]
	late, _ := c.member(by, "admin", "late") // by the new key: it is in the token
	c.await("the administrator has a credential by the new key", func() bool { return len(late.Roots().DER()) == 2 && own(late) == nil })
	if _, err := c.local().trust.RetireAuthority(ctx, connect.NewRequest(&apiv1.RetireAuthorityRequest{Id: former, Force: true})); err != nil {
		t.Fatal(err)
	}
	c.await("the one that stands by takes no certificate of the former key", func() bool { return connect.CodeOf(own(admin)) != 0 && own(admin) != nil })
	if err := own(late); err != nil {
		t.Error(fmt.Errorf("by the new key: %w", err))
	}
}
