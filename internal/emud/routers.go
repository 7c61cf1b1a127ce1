package emud

import (
	"errors"
	"net/http"

	"scaffold.dev/scaffold/emu"
)

func (e *engine) listRouters(*http.Request) (any, error) {
	all := make([]RouterState, 0, len(e.order))
	for _, r := range e.order {
		s, err := e.routerState(r)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (e *engine) showRouter(r *http.Request) (any, error) {
	one, err := e.routerOf(r)
	if err != nil {
		return nil, err
	}
	return e.routerState(one)
}

func (e *engine) routerState(r *router) (RouterState, error) {
	e.mu.Lock()
	s := RouterState{Name: r.Name(), Program: r.program, Down: r.failed}
	for _, p := range r.ports {
		s.Ports = append(s.Ports, PortState{Port: p.port, Far: p.link.name(1 - p.side), Link: p.link.number, Down: p.failed})
	}
	e.mu.Unlock()
	if r.feed != nil {
		f := r.feed.stateNow()
		s.Feed = &f
	}
	err := e.net.Do(r.Router, func() {
		s.Shard = r.Shard()
		s.Counters = r.Counters()
		if f := r.Failure(); f != nil {
			s.Failure = f.Error()
		}
	})
	return s, err
}

// swap gives a router another program while it runs.
func (e *engine) swap(req *http.Request) (any, error) {
	r, err := e.routerOf(req)
	if err != nil {
		return nil, err
	}
	var swap Swap
	if err := read(req, &swap); err != nil {
		return nil, err
	}
	program, err := e.program(r.cfg, swap.Program, swap.Parameters)
	if err != nil {
		return nil, bad(err)
	}
	e.routes.work.Lock() // routes do not change meanwhile
	defer e.routes.work.Unlock()
	if err := e.net.Do(r.Router, func() { r.Swap(program) }); err != nil {
		return nil, err
	}
	e.mu.Lock()
	r.program = swap.Program
	e.mu.Unlock()
	if err := errors.Join(e.loadRoutes(r), e.refreshClasses()); err != nil {
		return nil, err
	}
	return e.routerState(r)
}

// move puts a router on another thread while packets flow.
func (e *engine) move(req *http.Request) (any, error) {
	r, err := e.routerOf(req)
	if err != nil {
		return nil, err
	}
	shard := 0
	if err := read(req, &shard); err != nil {
		return nil, err
	}
	if err := bad(e.net.Move(emu.Move{Router: r.Router, Shard: shard})); err != nil {
		return nil, err
	}
	return e.routerState(r)
}

// balance puts routers on threads anew, by what they had to do since the last time, and says how many moved.
func (e *engine) balance(*http.Request) (any, error) {
	moves, err := e.net.Balance()
	if err != nil {
		return nil, err
	}
	return len(moves), nil
}
