package engine

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/internal/lab/emud"
)

// of is a client of the engine for something about a router inside it.
func (e *Engine) of(router string) (*emud.Client, error) {
	n := e.plan.File.Node(router)
	switch {
	case n == nil:
		return nil, &emud.NotFoundError{Text: fmt.Sprintf("lab %s has no node %q; it has %s", e.plan.File.Name, router, e.plan.File.Names())}
	case !n.Kind.InEngine():
		return nil, &emud.NotFoundError{Text: fmt.Sprintf("%s is %s; handlers are those of routers inside the engine", router, n.Kind.WithArticle())}
	}
	return e.Client(), nil
}

// Handlers are what can be read or written of a router inside the engine.
func (e *Engine) Handlers(ctx context.Context, router string) ([]emud.HandlerState, error) {
	c, err := e.of(router)
	if err != nil {
		return nil, err
	}
	return c.Handlers(ctx, router)
}

// Get reads a handler.
func (e *Engine) Get(ctx context.Context, router, handler string) (string, error) {
	c, err := e.of(router)
	if err != nil {
		return "", err
	}
	return c.Get(ctx, router, handler)
}

// Set writes a handler.
func (e *Engine) Set(ctx context.Context, router, handler, value string) error {
	c, err := e.of(router)
	if err != nil {
		return err
	}
	return c.Set(ctx, router, handler, value)
}
