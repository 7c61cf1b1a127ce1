package control

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab/poll"
)

// registerTime bounds how long a program may take from its start until its service has it.
const registerTime = 30 * time.Second

// Registered waits until every service has the programs that were started for it.
func (c *Control) Registered(ctx context.Context) error {
	if c.Stub || c.Plan.File.Bare {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	return poll.Until(ctx, func() error { return c.registered(ctx) })
}

// registered is an error that names the first started program whose service does not have it.
func (c *Control) registered(ctx context.Context) error {
	admin, err := c.Admin()
	if err != nil {
		return err
	}
	list, err := admin.ListServices(ctx, connect.NewRequest(&apiv1.ListServicesRequest{}))
	if err != nil {
		return err
	}
	serves := map[string]bool{}
	for _, s := range list.Msg.Services {
		for _, i := range s.Instances {
			serves[s.Name+" "+i.Host] = true
		}
	}
	for _, n := range c.Plan.Nodes {
		for _, p := range n.Programs {
			if p.Manual || p.Service == "" || serves[p.Service+" "+n.Name] {
				continue
			}
			if err := c.Processes.Exited(n.Name, p.Name); err != nil && !c.Processes.Running(n.Name, p.Name) {
				return poll.Final(err)
			}
			return fmt.Errorf("%s/%s listens on no port of service %s; the end of its log:\n%s", n.Name, p.Name, p.Service, c.Processes.LogTail(n.Name, p.Name))
		}
	}
	return nil
}

// ServiceAddr is the address of a service, which is the controller's to say.
func (c *Control) ServiceAddr(ctx context.Context, name string) (string, error) {
	if c.Stub {
		return "fd5c::1", nil
	}
	admin, err := c.Admin()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	address := ""
	err = poll.Until(ctx, func() error {
		s, err := admin.GetService(ctx, connect.NewRequest(&apiv1.GetServiceRequest{Name: name}))
		switch {
		case err == nil:
			address = s.Msg.Address
			return nil
		case connect.CodeOf(err) == connect.CodeUnavailable: // perhaps it is being restarted
			return fmt.Errorf("address of service %s: %w", name, err)
		}
		return poll.Final(fmt.Errorf("address of service %s: %w", name, err))
	})
	return address, err
}
