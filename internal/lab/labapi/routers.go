package labapi

import (
	"context"

	"scaffold.dev/scaffold/internal/lab/emud"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// engine is the process of a lab's emulated network.
func (s *Server) engine(name string) (*emud.Client, error) {
	l, err := s.open(name)
	if err != nil {
		return nil, err
	}
	client := l.Engine().Client()
	if client == nil {
		return nil, notFound("lab %s has nothing that is emulated", l.File.Name)
	}
	return client, nil
}

// ListRouters are all routers of the emulated network.
func (s calls) ListRouters(ctx context.Context, q *labv1.LabName) (*labv1.ListRoutersResponse, error) {
	e, err := s.engine(q.Lab)
	if err != nil {
		return nil, err
	}
	all, err := e.Routers(ctx)
	if err != nil {
		return nil, engineFault(err)
	}
	return as(&labv1.ListRoutersResponse{}, map[string][]emud.RouterState{"routers": all})
}

// GetRouter is one of them.
func (s calls) GetRouter(ctx context.Context, q *labv1.RouterName) (*labv1.Router, error) {
	e, err := s.engine(q.Lab)
	if err != nil {
		return nil, err
	}
	return router(ctx, e, q.Router)
}

func router(ctx context.Context, e *emud.Client, name string) (*labv1.Router, error) {
	state, err := e.Router(ctx, name)
	if err != nil {
		return nil, engineFault(err)
	}
	return as(&labv1.Router{}, state)
}

// SwapProgram gives a router another program while packets cross it.
func (s calls) SwapProgram(ctx context.Context, q *labv1.SwapProgramRequest) (*labv1.Router, error) {
	e, err := s.engine(q.Lab)
	if err != nil {
		return nil, err
	}
	s.cfg.Log("lab %s: %s: program %s", q.Lab, q.Router, q.Program)
	if err := e.Swap(ctx, q.Router, emud.Swap{Program: q.Program, Parameters: q.Parameters}); err != nil {
		return nil, engineFault(err)
	}
	return router(ctx, e, q.Router)
}

// ListHandlers are what can be read or written of a router.
func (s calls) ListHandlers(ctx context.Context, q *labv1.RouterName) (*labv1.ListHandlersResponse, error) {
	e, err := s.engine(q.Lab)
	if err != nil {
		return nil, err
	}
	all, err := e.Handlers(ctx, q.Router)
	if err != nil {
		return nil, engineFault(err)
	}
	return as(&labv1.ListHandlersResponse{}, map[string][]emud.HandlerState{"handlers": all})
}

// GetHandler reads one.
func (s calls) GetHandler(ctx context.Context, q *labv1.GetHandlerRequest) (*labv1.HandlerValue, error) {
	e, err := s.engine(q.Lab)
	if err != nil {
		return nil, err
	}
	value, err := e.Get(ctx, q.Router, q.Handler)
	return &labv1.HandlerValue{Value: value}, engineFault(err)
}

// SetHandler writes one.
func (s calls) SetHandler(ctx context.Context, q *labv1.SetHandlerRequest) (*labv1.HandlerValue, error) {
	if q.Value == nil {
		return nil, bad("expected what to write as \"value\", text")
	}
	e, err := s.engine(q.Lab)
	if err != nil {
		return nil, err
	}
	s.cfg.Log("lab %s: %s: write %s: %q", q.Lab, q.Router, q.Handler, *q.Value)
	return &labv1.HandlerValue{Value: *q.Value}, engineFault(e.Set(ctx, q.Router, q.Handler, *q.Value))
}
