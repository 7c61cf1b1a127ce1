package controld

import (
	"cmp"
	"context"
	"slices"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/store"
)

// DefaultOwner is whose services are that were applied without saying whose.
const DefaultOwner = "apply"

// applyBatch is how many records are saved at once, all or none: a transaction of the store holds as many.
const applyBatch = 100

// A step is what one service of an Apply comes to.
type step struct {
	change  *apiv1.ServiceChange
	records []store.Change
	effect  func()
}

// Apply makes services what the request says. First all is checked: a mistake anywhere changes nothing.
func (a *adminAPI) Apply(ctx context.Context, req *connect.Request[apiv1.ApplyRequest]) (*connect.Response[apiv1.ApplyResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &application{req: req.Msg, resp: &apiv1.ApplyResponse{}}
	if err := a.n.ask(ctx, func() { p.n = a.n; p.plan() }); err != nil {
		return nil, err
	}
	if len(p.resp.Problems) == 0 && !req.Msg.DryRun {
		if err := a.carryOut(context.WithoutCancel(ctx), p); err != nil {
			return nil, err
		}
		if p.resp.Done > 0 {
			p.resp.Pending = a.await(ctx)
		}
	}
	return connect.NewResponse(p.resp), nil
}

// carryOut saves and does step after step, as many at once as are saved at once. Where saving fails in the
// middle the answer says what was done: to apply the same again does the rest.
func (a *adminAPI) carryOut(ctx context.Context, p *application) error {
	for rest := p.steps; len(rest) > 0; {
		k, records := 0, []store.Change(nil)
		for k < len(rest) && (k == 0 || len(records)+len(rest[k].records) <= applyBatch) {
			records = append(records, rest[k].records...)
			k++
		}
		if err := a.n.saver.now(ctx, records...); err != nil {
			failed := a.n.unsaved(err) // in doubt the term ends: the next one begins with what is there
			if p.resp.Done == 0 {
				return failed
			}
			p.resp.Failed = err.Error()
			return nil
		}
		if err := a.n.ask(ctx, func() { p.do(rest[:k]) }); err != nil {
			return err
		}
		rest = rest[k:]
	}
	return nil
}

func (p *application) do(steps []step) {
	for _, s := range steps {
		s.effect()
		s.change.Done = true
		p.resp.Done++
	}
	p.n.flush()
}

// Export is what is there, as files have it.
func (a *adminAPI) Export(ctx context.Context, req *connect.Request[apiv1.ExportRequest]) (*connect.Response[apiv1.ExportResponse], error) {
	return get(ctx, a.n, func() (*apiv1.ExportResponse, error) {
		resp := &apiv1.ExportResponse{}
		if len(req.Msg.Names) == 0 {
			for _, r := range a.n.names.All() {
				resp.Services = append(resp.Services, a.n.spec(r))
			}
			return resp, nil
		}
		for _, name := range req.Msg.Names {
			r, err := a.n.lookup(name)
			if err != nil {
				return nil, err
			}
			resp.Services = append(resp.Services, a.n.spec(r))
		}
		slices.SortFunc(resp.Services, func(a, b *apiv1.ServiceSpec) int { return cmp.Compare(a.Name, b.Name) })
		return resp, nil
	})
}
