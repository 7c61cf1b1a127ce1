// Package rig is a lab that is up together with its controller: what the demo and experiments do to the one and ask the
// other.
package rig

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
)

// A Rig is a lab that is up, and its controller.
type Rig struct {
	*lab.Lab
	Client apiv1connect.AdminClient // of the controller
}

// New takes a lab that is up.
func New(l *lab.Lab) (*Rig, error) {
	admin, err := l.Admin()
	return &Rig{l, admin}, err
}

// Act carries out one action, written as in a lab file's timeline: "kill s2/nginx".
func (r *Rig) Act(ctx context.Context, format string, args ...any) error {
	a, err := file.ParseAction(fmt.Sprintf(format, args...))
	if err != nil {
		return err
	}
	return r.Do(ctx, a)
}

// Service asks the controller for a service with its instances.
func (r *Rig) Service(ctx context.Context, name string) (*apiv1.Service, error) {
	res, err := r.Client.GetService(ctx, connect.NewRequest(&apiv1.GetServiceRequest{Name: name}))
	if err != nil {
		return nil, fmt.Errorf("ask for service %s: %w", name, err)
	}
	return res.Msg, nil
}

// Events returns the controller's latest events, oldest first.
func (r *Rig) Events(ctx context.Context) (all []*apiv1.Event, err error) {
	stream, err := r.Client.WatchEvents(ctx, connect.NewRequest(&apiv1.WatchEventsRequest{History: 4096}))
	if err != nil {
		return nil, fmt.Errorf("ask for events: %w", err)
	}
	defer stream.Close()
	for stream.Receive() {
		all = append(all, stream.Msg())
	}
	return all, stream.Err()
}
