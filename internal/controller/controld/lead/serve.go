package lead

import (
	"context"
	"errors"
	"net"

	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// Run leads whenever it can, stands by otherwise, and answers at the listeners, until ctx ends or there is no sense in it
// any more.
func (c *Process) Run(ctx context.Context, listeners []net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	if c.Gate != nil {
		c.Gate.Secure(listeners)
	}
	if c.Gate != nil || c.store.Elected() {
		group.Go(func() error { return c.followTrust(ctx) })
	}
	group.Go(func() error { return c.campaign(ctx) })
	group.Go(func() error { c.Watch.Run(ctx); return nil })
	if c.store.Elected() {
		group.Go(func() error { c.store.Candidates(ctx, c.Peers.Set); return nil })
		group.Go(func() error { return c.serve(ctx, listeners) })
		return group.Wait()
	}
	group.Go(func() error { // nobody is answered before there is an answer
		select {
		case <-c.leads:
		case <-ctx.Done():
			return closed(listeners)
		}
		return c.serve(ctx, listeners)
	})
	return group.Wait()
}

// serve answers. Of several controllers one is ready that follows another, or waits for the rest.
func (c *Process) serve(ctx context.Context, listeners []net.Listener) error {
	obs.TellManager("READY=1")
	return api.Serve(ctx, c, listeners...)
}

func closed(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}
