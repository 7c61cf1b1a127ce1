package labapi

import (
	"errors"
	"net/http"

	"scaffold.dev/scaffold/internal/emud"
)

// A Value is a handler of an emulated router with what it holds.
type Value struct {
	Value string `json:"value"`
}

// engine is the process of the lab's emulated network.
func (s *Server) engine(r *http.Request) (*emud.Client, error) {
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	client := l.Engine()
	if client == nil {
		return nil, notFound("lab %s has nothing that is emulated", l.File.Name)
	}
	return client, nil
}

// engineFault gives errors of the engine their status. What it refuses was badly asked for.
func engineFault(err error) error {
	var none *emud.NotFoundError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &none):
		return notFound("%w", err)
	case errors.Is(err, emud.ErrGone):
		return err
	}
	return bad("%w", err)
}

func (s *Server) routers(_ http.ResponseWriter, r *http.Request) (any, error) {
	e, err := s.engine(r)
	if err != nil {
		return nil, err
	}
	all, err := e.Routers(r.Context())
	return append([]emud.RouterState{}, all...), engineFault(err)
}

func (s *Server) router(_ http.ResponseWriter, r *http.Request) (any, error) {
	e, err := s.engine(r)
	if err != nil {
		return nil, err
	}
	state, err := e.Router(r.Context(), r.PathValue("router"))
	return state, engineFault(err)
}

func (s *Server) handlers(_ http.ResponseWriter, r *http.Request) (any, error) {
	e, err := s.engine(r)
	if err != nil {
		return nil, err
	}
	all, err := e.Handlers(r.Context(), r.PathValue("router"))
	return append([]emud.HandlerState{}, all...), engineFault(err)
}

func (s *Server) getHandler(_ http.ResponseWriter, r *http.Request) (any, error) {
	e, err := s.engine(r)
	if err != nil {
		return nil, err
	}
	value, err := e.Get(r.Context(), r.PathValue("router"), r.PathValue("handler"))
	return Value{value}, engineFault(err)
}

func (s *Server) setHandler(_ http.ResponseWriter, r *http.Request) (any, error) {
	var q struct {
		Value *string `json:"value"`
	}
	if err := receive(r, &q); err != nil {
		return nil, err
	}
	if q.Value == nil {
		return nil, bad("expected what to write as \"value\", text")
	}
	e, err := s.engine(r)
	if err != nil {
		return nil, err
	}
	router, handler := r.PathValue("router"), r.PathValue("handler")
	s.cfg.Log("lab %s: %s: write %s: %q", r.PathValue("lab"), router, handler, *q.Value)
	return Value{*q.Value}, engineFault(e.Set(r.Context(), router, handler, *q.Value))
}

// swap gives a router another program while packets cross it.
func (s *Server) swap(_ http.ResponseWriter, r *http.Request) (any, error) {
	var q emud.Swap
	if err := receive(r, &q); err != nil {
		return nil, err
	}
	e, err := s.engine(r)
	if err != nil {
		return nil, err
	}
	router := r.PathValue("router")
	s.cfg.Log("lab %s: %s: program %s", r.PathValue("lab"), router, q.Program)
	if err := e.Swap(r.Context(), router, q); err != nil {
		return nil, engineFault(err)
	}
	state, err := e.Router(r.Context(), router)
	return state, engineFault(err)
}
