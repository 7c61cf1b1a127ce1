package controld

import (
	"cmp"
	"context"
	"slices"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/specs"
)

// DefaultOwner is whose services are that were applied without saying whose.
const DefaultOwner = specs.DefaultOwner

// applyBatch is how many services are changed before others have their turn in the loop.
const applyBatch = 100

// Apply makes services what the request says. First all is checked: a mistake anywhere changes nothing.
func (a *adminAPI) Apply(ctx context.Context, req *connect.Request[apiv1.ApplyRequest]) (*connect.Response[apiv1.ApplyResponse], error) {
	defer a.n.orders.Alone()()
	answer := &apiv1.ApplyResponse{}
	var steps, boosts []specs.Step
	err := a.n.ask(ctx, func() {
		steps = specs.Make(a.n.services, a.n.cfg.Domain, req.Msg, answer)
		boosts = a.n.boost.Apply(req.Msg, answer)
	})
	if err != nil {
		return nil, err
	}
	if len(answer.Problems) == 0 && !req.Msg.DryRun {
		if err := a.carryOut(context.WithoutCancel(ctx), steps, boosts, answer); err != nil {
			return nil, err
		}
		if answer.Done > 0 {
			answer.Pending = a.n.pushes.Await(ctx)
		}
	}
	return connect.NewResponse(answer), nil
}

// carryOut saves all steps at once, all or none, and does them then: those of boost in one turn of the loop, for an entry
// is nothing without its sites.
func (a *adminAPI) carryOut(ctx context.Context, steps, boosts []specs.Step, answer *apiv1.ApplyResponse) error {
	var all orders.Change
	for _, s := range slices.Concat(steps, boosts) {
		all.Records, all.Says = append(all.Records, s.Records...), append(all.Says, s.Says...)
	}
	if err := a.n.orders.Save(ctx, &all); err != nil {
		return err
	}
	for batch := range slices.Chunk(steps, applyBatch) {
		if err := a.n.orders.CarryOut(ctx, func() { a.step(batch, answer) }); err != nil {
			return err
		}
	}
	if len(boosts) == 0 {
		return nil
	}
	return a.n.orders.CarryOut(ctx, func() { a.step(boosts, answer) })
}

func (a *adminAPI) step(batch []specs.Step, answer *apiv1.ApplyResponse) {
	for _, s := range batch {
		s.Effect()
		a.n.events.Ordered(s.Says)
		s.Change.Done = true
		answer.Done++
	}
	a.n.flush()
}

// Export is what is there, as files have it.
func (a *adminAPI) Export(ctx context.Context, req *connect.Request[apiv1.ExportRequest]) (*connect.Response[apiv1.ExportResponse], error) {
	return get(ctx, a.n, func() (*apiv1.ExportResponse, error) {
		resp := &apiv1.ExportResponse{}
		if len(req.Msg.Names) == 0 {
			for _, r := range a.n.names.All() {
				resp.Services = append(resp.Services, specs.Of(r, a.n.overrides.Weights(r.ID)))
			}
			resp.BoostSites, resp.BoostEntries = a.n.boost.Specs()
			return resp, nil
		}
		for _, name := range req.Msg.Names {
			r, err := a.n.services.Lookup(name)
			if err != nil {
				return nil, err
			}
			resp.Services = append(resp.Services, specs.Of(r, a.n.overrides.Weights(r.ID)))
		}
		slices.SortFunc(resp.Services, func(a, b *apiv1.ServiceSpec) int { return cmp.Compare(a.Name, b.Name) })
		return resp, nil
	})
}
