package emud

import (
	"net/http"
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
	err := e.net.Do(r.Router, func() {
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
	program, err := e.programs.make(swap.Program, swap.Parameters)
	if err != nil {
		return nil, bad(err)
	}
	if err := e.net.Do(r.Router, func() { r.Swap(program) }); err != nil {
		return nil, err
	}
	e.mu.Lock()
	r.program = swap.Program
	e.mu.Unlock()
	return e.routerState(r)
}
