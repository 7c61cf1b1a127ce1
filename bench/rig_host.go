package bench

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// AskHost calls the daemon of a host.
func (r *Rig) AskHost(node string, ask func(apiv1connect.LocalClient) error) error {
	client, base, err := api.Dial("unix:" + r.Socket(node))
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	if err := ask(apiv1connect.NewLocalClient(client, base)); err != nil {
		return fmt.Errorf("ask the daemon of %s: %w", node, err)
	}
	return nil
}

// Joined is an error until the daemon of a host says that it has joined.
func (r *Rig) Joined(ctx context.Context, host string) error {
	return r.AskHost(host, func(c apiv1connect.LocalClient) error {
		s, err := c.GetHostStatus(ctx, connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err == nil && s.Msg.State != "joined" {
			err = fmt.Errorf("it is %s: %s", s.Msg.State, s.Msg.Reason)
		}
		return err
	})
}

// device is a host's interface to a router.
func (r *Rig) device(host, router string) (string, error) {
	for _, p := range r.Plan().Node(host).Ports {
		if p.Far.Name == router {
			return p.Dev, nil
		}
	}
	return "", fmt.Errorf("%s has no link to %s", host, router)
}

// attachTime bounds how long a host may take to get a locator at a router.
const attachTime = 20 * time.Second

// AwaitAttached waits until the host has a locator at the router.
func (r *Rig) AwaitAttached(ctx context.Context, host, router string) error {
	dev, err := r.device(host, router)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attachTime)
	defer cancel()
	return r.AskHost(host, func(c apiv1connect.LocalClient) error {
		for {
			s, err := c.GetHostStatus(ctx, connect.NewRequest(&apiv1.GetHostStatusRequest{}))
			if err != nil {
				return err
			}
			for _, u := range s.Msg.Uplinks {
				if u.Interface == dev && u.Up && u.Locator != "" {
					return nil
				}
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("no locator at %s in %v: it has %v", router, attachTime, s.Msg.Uplinks)
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
}

// Shift moves all flows of a host that leave towards one router to another, and says how many cannot:
// those that are only about to begin.
func (r *Rig) Shift(ctx context.Context, host, from, to string) (failed uint32, err error) {
	a, err := r.device(host, from)
	if err != nil {
		return 0, err
	}
	b, err := r.device(host, to)
	if err != nil {
		return 0, err
	}
	err = r.AskHost(host, func(c apiv1connect.LocalClient) error {
		m, err := c.MoveFlows(ctx, connect.NewRequest(&apiv1.MoveFlowsRequest{From: a, To: b}))
		if err == nil {
			failed = m.Msg.Failed
		}
		return err
	})
	return failed, err
}

// Drain takes a host out of a service; mode is "wait" or "shed".
func (r *Rig) Drain(ctx context.Context, service, host, mode string) error {
	_, err := r.Client.Drain(ctx, connect.NewRequest(&apiv1.DrainRequest{Name: service, Host: host, Mode: mode, Force: true}))
	if err != nil {
		return fmt.Errorf("drain %s on %s: %w", service, host, err)
	}
	return nil
}
