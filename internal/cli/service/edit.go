package service

import (
	"context"
	"errors"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/remote"
)

// editTries is how often an order is tried against others that change something else of the same service.
const editTries = 8

// edit changes a part of a service: it is read, changed, and sent back with the version that was read. Where somebody
// else was faster it is read again, and goes on if the part that this order sets is what it was; otherwise the one who
// orders has not seen what he would overwrite. part is that part of a service, as text; send orders the change of it.
func edit(ctx context.Context, c apiv1connect.AdminClient, at, name string, part func(*apiv1.Service) string,
	send func(ctx context.Context, c apiv1connect.AdminClient, at string, now *apiv1.Service) (*apiv1.Service, error)) (*apiv1.Service, error) {
	seen := ""
	for try := 1; ; try++ {
		now, err := remote.Ask(ctx, c.GetService, &apiv1.GetServiceRequest{Name: name}, at, remote.ListServices)
		if err != nil {
			return nil, err
		}
		if try == 1 {
			seen = part(now)
		}
		answer, err := send(ctx, c, at, now)
		var changed remote.ChangedError
		if !errors.As(err, &changed) || try == editTries {
			return answer, err
		}
		if again, failed := remote.Ask(ctx, c.GetService, &apiv1.GetServiceRequest{Name: name}, at, remote.ListServices); failed != nil || part(again) != seen {
			return nil, err
		}
	}
}
