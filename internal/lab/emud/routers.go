package emud

import (
	"context"
	"errors"
	"maps"
	"slices"

	"scaffold.dev/scaffold/emu"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// ListRouters tells the present state of all routers.
func (e server) ListRouters(context.Context, *emudv1.ListRoutersRequest) (*emudv1.ListRoutersResponse, error) {
	all := &emudv1.ListRoutersResponse{}
	for _, r := range e.order {
		s, err := e.routerState(r)
		if err != nil {
			return nil, err
		}
		all.Routers = append(all.Routers, s)
	}
	return all, nil
}

// GetRouter tells that of one.
func (e server) GetRouter(_ context.Context, q *emudv1.GetRouterRequest) (*emudv1.Router, error) {
	r, err := e.find(q.Router)
	if err != nil {
		return nil, err
	}
	return e.routerState(r)
}

func (e *engine) routerState(r *router) (*emudv1.Router, error) {
	e.mu.Lock()
	s := &emudv1.Router{Name: r.Name(), Program: r.program, Down: r.failed}
	for _, p := range r.ports {
		s.Ports = append(s.Ports, &emudv1.Port{Port: int32(p.port), Far: p.link.name(1 - p.side), Link: int32(p.link.number), Down: p.failed})
	}
	e.mu.Unlock()
	if r.feed != nil {
		s.Feed = r.feed.stateNow()
	}
	err := e.net.Do(r.Router, func() {
		c := r.Counters()
		s.Shard = int32(r.Shard())
		s.Counters = &emudv1.RouterCounters{In: c.In, Dropped: c.Dropped, Down: c.Down, Refused: c.Refused, Local: c.Local, Made: c.Made, Starved: c.Starved}
		if f := r.Failure(); f != nil {
			s.Failure = text(f.Error())
		}
	})
	return s, err
}

// SwapProgram gives a router another program while it runs.
func (e server) SwapProgram(_ context.Context, q *emudv1.SwapProgramRequest) (*emudv1.Router, error) {
	r, err := e.find(q.Router)
	if err != nil {
		return nil, err
	}
	program, err := e.program(r.cfg, q.Program, q.Parameters)
	if err != nil {
		return nil, bad(err)
	}
	e.routes.work.Lock() // routes do not change meanwhile
	defer e.routes.work.Unlock()
	if err := e.net.Do(r.Router, func() { r.Swap(program) }); err != nil {
		return nil, err
	}
	e.mu.Lock()
	r.program = q.Program
	e.mu.Unlock()
	if err := errors.Join(e.loadRoutes(r), e.refreshClasses()); err != nil {
		return nil, err
	}
	return e.routerState(r)
}

// MoveRouter puts a router on another thread while packets flow.
func (e server) MoveRouter(_ context.Context, q *emudv1.MoveRouterRequest) (*emudv1.Router, error) {
	r, err := e.find(q.Router)
	if err != nil {
		return nil, err
	}
	if err := bad(e.net.Move(emu.Move{Router: r.Router, Shard: int(q.Shard)})); err != nil {
		return nil, err
	}
	return e.routerState(r)
}

// Balance puts routers on threads anew, by what they had to do since the last time, and says how many moved.
func (e server) Balance(context.Context, *emudv1.BalanceRequest) (*emudv1.BalanceResponse, error) {
	moves, err := e.net.Balance()
	return &emudv1.BalanceResponse{Moved: int32(len(moves))}, err
}

// ListPrograms tells what routers may run.
func (e server) ListPrograms(context.Context, *emudv1.ListProgramsRequest) (*emudv1.ListProgramsResponse, error) {
	return &emudv1.ListProgramsResponse{Programs: slices.Sorted(maps.Keys(e.programs))}, nil
}
