package control

import (
	"context"
	"fmt"
	"net"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
)

// A Config is what the control plane of a lab is made from.
type Config struct {
	Plan      *plan.Plan
	Dir       state.Dir
	Processes Processes
	Alive     func() error // an error, final for poll, as soon as a daemon has ended
	Stub      bool         // tests: something else runs in place of every daemon, and nobody is asked
}

// Processes are asked about those that do not do what is waited for.
type Processes interface {
	Exited(node, name string) error
	Running(node, name string) bool
	LogTail(node, name string) string
}

// Control is what a lab says to its controller and its hosts.
type Control struct {
	Config
}

// New asks nobody.
func New(c Config) *Control { return &Control{c} }

// Endpoint is that of the controller's API, "" in a network of plain IP.
func (c *Control) Endpoint() string {
	if c.Plan.File.Bare {
		return ""
	}
	controllers := c.Plan.File.Of(file.Controller)
	for _, n := range controllers { // of several any that runs will do: it hands on
		socket := c.Dir.Socket(c.Plan.Node(n.Name))
		if conn, err := net.DialTimeout("unix", socket, time.Second); err == nil {
			conn.Close()
			return "unix:" + socket
		}
	}
	return "unix:" + c.Dir.Socket(c.Plan.Node(controllers[0].Name))
}

// Admin is a client of the controller's API.
func (c *Control) Admin() (apiv1connect.AdminClient, error) {
	if c.Plan.File.Bare {
		return nil, fmt.Errorf("lab %s is a network of plain IP and has no controller", c.Plan.File.Name)
	}
	client, base, err := api.Dial(c.Endpoint())
	if err != nil {
		return nil, err
	}
	return apiv1connect.NewAdminClient(client, base), nil
}

// Steer has the controller send flows elsewhere: weight, drain, undrain.
func (c *Control) Steer(ctx context.Context, a file.Action) error {
	admin, err := c.Admin()
	if err != nil {
		return err
	}
	if a.Verb == "weight" {
		_, err = admin.SetWeight(ctx, connect.NewRequest(&apiv1.SetWeightRequest{Name: a.Service, Host: a.Node, Weight: a.Weight}))
		return err
	}
	_, err = admin.Drain(ctx, connect.NewRequest(&apiv1.DrainRequest{Name: a.Service, Host: a.Node, Undrain: a.Verb == "undrain", Force: true, Mode: a.Mode}))
	return err
}
