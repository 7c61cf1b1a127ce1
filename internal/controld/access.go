package controld

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/store"
)

// UpdateAccess replaces who may serve a service and who may connect to it. Its key is for life.
func (a *adminAPI) UpdateAccess(ctx context.Context, req *connect.Request[apiv1.UpdateAccessRequest]) (*connect.Response[apiv1.Service], error) {
	return a.changed(ctx, func() (names.Record, change, error) {
		r, err := a.n.lookup(req.Msg.Name)
		if err != nil {
			return r, change{}, err
		}
		access, err := accessFrom(req.Msg.Access)
		if err != nil {
			return r, change{}, err
		}
		if len(access.Key) == 0 {
			access.Key = r.Access.Key
		}
		if string(access.Key) != string(r.Access.Key) {
			return r, change{}, fmt.Errorf("%w: service %s: its serviceID follows from its key, which is for life: remove the service and make it with the other key", errConflict, r.Name)
		}
		r, err = a.n.names.With(r.Name, r.Policy, access, r.Applied)
		return r, change{[]store.Change{store.PutService(r)}, func() { a.n.setRecord(r, "service.access", "who may serve and connect changed") }}, err
	})
}

// setRecord puts a new version of a service in its place and lets everybody know.
func (n *network) setRecord(r names.Record, kind, text string) {
	before, _ := n.names.ByID(r.ID)
	if err := n.names.Replace(r); err != nil {
		panic(fmt.Sprintf("controld: service %s passed its check and is refused: %v", r.Name, err))
	}
	n.plan.SetService(r.ID, planPolicy(r))
	if !before.Access.Equal(r.Access) {
		n.watchGuard(r)
		n.moveGuards()
		n.rejudge(r.ID)
	}
	n.event(kind, r.Name, text, "version", uitoa(r.Version))
	for _, h := range n.hosts {
		if _, told := h.told[r.ID]; h.Here && told {
			n.tellPolicy(h, r.ID)
			n.tellDrain(h, r.ID) // a drain whose mode is the policy's
		}
	}
}

func accessFrom(a *apiv1.Access) (names.Access, error) {
	key, err := names.ParseKey(a.GetKey())
	if err != nil {
		return names.Access{}, fmt.Errorf("%w: %w", names.ErrInvalid, err)
	}
	return names.Access{Key: key, Servers: a.GetServers(), Allow: a.GetAllow()}, nil
}

func apiAccess(a names.Access) *apiv1.Access {
	return &apiv1.Access{Key: names.FormatKey(a.Key), Servers: a.Servers, Allow: a.Allow}
}
