package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/poll"
	"scaffold.dev/scaffold/internal/lab/state"
)

const network = `
name: t
services: {web: {}}
nodes: {ctl: controller, r: {kind: router, service: true}, h: {kind: host, programs: [{name: httpd, service: web, run: "true"}]}}
links: [[r, h]]
`

// A daemon answers as both a controller and a host: each question brings the network one step further.
type daemon struct {
	apiv1connect.UnimplementedAdminHandler
	apiv1connect.UnimplementedLocalHandler

	mu    sync.Mutex
	asked []string
	step  int
}

// at notes the question and says whether the network has come as far as a step.
func (d *daemon) at(question string, step int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, question)
	d.step++
	return d.step > step
}

func (d *daemon) GetStatus(context.Context, *connect.Request[apiv1.GetStatusRequest]) (*connect.Response[apiv1.Status], error) {
	if !d.at("status", 1) {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("nobody leads"))
	}
	return connect.NewResponse(&apiv1.Status{}), nil
}

func (d *daemon) CreateService(_ context.Context, q *connect.Request[apiv1.CreateServiceRequest]) (*connect.Response[apiv1.Service], error) {
	d.at("create "+q.Msg.Name, 0)
	return nil, connect.NewError(connect.CodeAlreadyExists, errors.New("it was in the store"))
}

func (d *daemon) ListRouters(context.Context, *connect.Request[apiv1.ListRoutersRequest]) (*connect.Response[apiv1.ListRoutersResponse], error) {
	if !d.at("routers", 5) {
		return connect.NewResponse(&apiv1.ListRoutersResponse{}), nil
	}
	return connect.NewResponse(&apiv1.ListRoutersResponse{Routers: []*apiv1.Router{{Name: "r", State: "up"}}}), nil
}

func (d *daemon) ListHosts(context.Context, *connect.Request[apiv1.ListHostsRequest]) (*connect.Response[apiv1.ListHostsResponse], error) {
	return connect.NewResponse(&apiv1.ListHostsResponse{Hosts: []*apiv1.Host{{Name: "h", State: "up"}}}), nil
}

func (d *daemon) ListServices(context.Context, *connect.Request[apiv1.ListServicesRequest]) (*connect.Response[apiv1.ListServicesResponse], error) {
	s := &apiv1.Service{Name: "web"}
	if d.at("services", 1) {
		s.Instances = []*apiv1.Instance{{Host: "h"}}
	}
	return connect.NewResponse(&apiv1.ListServicesResponse{Services: []*apiv1.Service{s}}), nil
}

func (d *daemon) GetService(_ context.Context, q *connect.Request[apiv1.GetServiceRequest]) (*connect.Response[apiv1.Service], error) {
	switch {
	case q.Msg.Name != "web":
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such service"))
	case !d.at("service", 1):
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("nobody leads"))
	}
	return connect.NewResponse(&apiv1.Service{Address: "fd5c::7"}), nil
}

func (d *daemon) GetHostStatus(context.Context, *connect.Request[apiv1.GetHostStatusRequest]) (*connect.Response[apiv1.HostStatus], error) {
	s := &apiv1.HostStatus{State: "joining", Reason: "it has no address"}
	if d.at("host", 8) {
		s.State, s.Uplinks = "joined", []*apiv1.Uplink{{Interface: "to-r", Up: true, Locator: "fd5d::1"}}
	}
	return connect.NewResponse(s), nil
}

// A record is what is known of processes.
type record struct{ ended string }

func (r record) Running(string, string) bool      { return false }
func (r record) LogTail(node, name string) string { return "the log of " + node + "/" + name }
func (r record) Exited(node, name string) error {
	if node+"/"+name == r.ended {
		return fmt.Errorf("%s ended", r.ended)
	}
	return nil
}

// of is a lab whose daemons are d.
func of(t *testing.T, text string, d *daemon, serving ...string) *Control {
	t.Helper()
	f, err := file.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("", "lab") // t.TempDir may be too long for a Unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	c := New(Config{Plan: plan.Make(f), Dir: state.Dir{Base: base, Lab: "t"}, Processes: record{}, Alive: func() error { return nil }})
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewAdminHandler(d))
	mux.Handle(apiv1connect.NewLocalHandler(d))
	server := &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(func() { server.Close() })
	for _, node := range serving {
		path := c.Dir.Socket(c.Plan.Node(node))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go server.Serve(l) // ends with Close
	}
	return c
}

func TestANetworkHasSettledWhenAllHaveJoined(t *testing.T) {
	d := &daemon{}
	if err := of(t, network, d, "ctl", "h").Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"status", "status", "create web", "routers", "host"}
	if got := slices.CompactFunc(d.asked, func(a, b string) bool { return a == b && a != "status" }); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

func TestWhoIsMissingIsNamedWithItsLog(t *testing.T) {
	c := of(t, network, &daemon{}, "ctl", "h")
	admin, err := c.Admin()
	if err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{ // each asks for the first time
		"ctl (controller) does not answer":                                                   c.answers(t.Context(), admin),
		"r (router) has not joined":                                                          c.joined(t.Context(), admin),
		"h (host) is not ready: joining it has no address":                                   c.hostReady(t.Context(), c.Plan.Node("h")),
		"r (host) does not answer: unavailable: dial unix " + c.Dir.Socket(c.Plan.Node("r")): c.hostReady(t.Context(), c.Plan.Node("r")),
	} {
		node, _, _ := strings.Cut(want, " ")
		if err = c.unsettled(err); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the log of "+node+"/") {
			t.Errorf("%v; want %q and its log", err, want)
		}
	}
}

func TestNobodyWaitsForADaemonThatHasEnded(t *testing.T) {
	c := of(t, network, &daemon{})
	c.Alive = func() error { return poll.Final(errors.New("r/routerd ended")) }
	if err := c.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), "r/routerd ended") {
		t.Errorf("%v", err)
	}
	c.Plan.File.Network.Trust = "keys"
	if err := c.Admit(t.Context()); err == nil || !strings.Contains(err.Error(), "r/routerd ended") {
		t.Errorf("%v", err)
	}
}

func TestAServiceHasItsProgramsOrTheOneThatEndedIsNamed(t *testing.T) {
	d := &daemon{}
	if err := of(t, network, d, "ctl").Registered(t.Context()); err != nil || len(d.asked) != 2 {
		t.Errorf("asked %q, %v", d.asked, err)
	}
	c := of(t, network, &daemon{}, "ctl")
	c.Processes = record{"h/httpd"}
	if err := c.Registered(t.Context()); err == nil || err.Error() != "h/httpd ended" {
		t.Errorf("%v", err)
	}
}

func TestTheAddressOfAServiceIsAskedAgainWhileNobodyLeads(t *testing.T) {
	d := &daemon{}
	c := of(t, network, d, "ctl")
	if addr, err := c.ServiceAddr(t.Context(), "web"); err != nil || addr != "fd5c::7" || len(d.asked) != 2 {
		t.Errorf("%s after %q, %v", addr, d.asked, err)
	}
	if _, err := c.ServiceAddr(t.Context(), "db"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("of a service that is not there: %v", err)
	}
}

func TestAHostIsAttachedWhenItHasAnAddressThere(t *testing.T) {
	d := &daemon{}
	c := of(t, network, d, "h")
	if err := c.Attached(t.Context(), c.Plan.Node("h"), "r"); err != nil || len(d.asked) != 9 {
		t.Errorf("asked %d times, %v", len(d.asked), err)
	}
}

func TestTheControllerIsOneThatRuns(t *testing.T) {
	text := "name: t\nnodes: {a: controller, b: controller, c: controller, r: {kind: router, service: true}, h: host}\nlinks: [[r, h]]\n"
	for _, running := range []string{"b", "c", ""} {
		c := of(t, text, &daemon{}, slices.DeleteFunc([]string{running}, func(s string) bool { return s == "" })...)
		want := running
		if want == "" { // who asks hears that it does not answer
			want = "a"
		}
		if got := c.Endpoint(); got != "unix:"+c.Dir.Socket(c.Plan.Node(want)) {
			t.Errorf("%q runs, the endpoint is %s", running, got)
		}
	}
	c := of(t, "name: t\nnodes: {h: host, r: plain}\nlinks: [[h, r]]\n", &daemon{})
	if _, err := c.Admin(); c.Endpoint() != "" || err == nil || !strings.Contains(err.Error(), "plain IP") {
		t.Errorf("a network without one: %q, %v", c.Endpoint(), err)
	}
}
