package emud

import (
	"context"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fidelity"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// Ready is an error until the engine runs and answers.
func (c *Client) Ready(ctx context.Context) error {
	_, err := ask(ctx, c, c.calls.ListPrograms, &emudv1.ListProgramsRequest{})
	return err
}

// Links are the states of all links.
func (c *Client) Links(ctx context.Context) ([]LinkState, error) {
	m, err := ask(ctx, c, c.calls.ListLinks, &emudv1.ListLinksRequest{})
	return many(m.GetLinks(), linkOf), err
}

// many are the values of messages, nil of none.
func many[M, V any](messages []M, of func(M) V) (values []V) {
	for _, m := range messages {
		values = append(values, of(m))
	}
	return values
}

// SetParams changes a link for the packets to come.
func (c *Client) SetParams(ctx context.Context, link int, p [2]emu.Params) (LinkState, error) {
	m, err := ask(ctx, c, c.calls.SetParams, &emudv1.SetParamsRequest{Link: int32(link), There: paramsMessage(p[0]), Back: paramsMessage(p[1])})
	return linkOf(m), err
}

// Routers are the states of all routers.
func (c *Client) Routers(ctx context.Context) ([]RouterState, error) {
	m, err := ask(ctx, c, c.calls.ListRouters, &emudv1.ListRoutersRequest{})
	return many(m.GetRouters(), routerOf), err
}

// Router is the state of one.
func (c *Client) Router(ctx context.Context, name string) (RouterState, error) {
	m, err := ask(ctx, c, c.calls.GetRouter, &emudv1.GetRouterRequest{Router: text(name)})
	return routerOf(m), err
}

// Handlers are what can be read or written of a router.
func (c *Client) Handlers(ctx context.Context, router string) ([]HandlerState, error) {
	m, err := ask(ctx, c, c.calls.ListHandlers, &emudv1.ListHandlersRequest{Router: text(router)})
	return many(m.GetHandlers(), handlerOf), err
}

// Get reads a handler of a router.
func (c *Client) Get(ctx context.Context, router, handler string) (string, error) {
	m, err := ask(ctx, c, c.calls.GetHandler, &emudv1.GetHandlerRequest{Router: text(router), Handler: text(handler)})
	return m.GetValue(), err
}

// Set writes a handler of a router.
func (c *Client) Set(ctx context.Context, router, handler, value string) error {
	_, err := ask(ctx, c, c.calls.SetHandler, &emudv1.SetHandlerRequest{Router: text(router), Handler: text(handler), Value: text(value)})
	return err
}

// Swap gives a router another program.
func (c *Client) Swap(ctx context.Context, router string, s Swap) error {
	q := &emudv1.SwapProgramRequest{Router: text(router), Program: text(s.Program), Parameters: map[string]string{}}
	for key, value := range s.Parameters {
		q.Parameters[text(key)] = text(value)
	}
	_, err := ask(ctx, c, c.calls.SwapProgram, q)
	return err
}

// Move puts a router on another of the engine's threads.
func (c *Client) Move(ctx context.Context, router string, shard int) error {
	_, err := ask(ctx, c, c.calls.MoveRouter, &emudv1.MoveRouterRequest{Router: text(router), Shard: int32(shard)})
	return err
}

// Change carries out faults and repairs, all at once.
func (c *Client) Change(ctx context.Context, changes ...Fault) (Routes, error) {
	m, err := ask(ctx, c, c.calls.ChangeFaults, &emudv1.ChangeFaultsRequest{Changes: many(changes, faultMessage)})
	return readRoutes(m), err
}

// Routes say whether computed routes have followed the faults.
func (c *Client) Routes(ctx context.Context) (Routes, error) {
	m, err := ask(ctx, c, c.calls.GetRoutes, &emudv1.GetRoutesRequest{})
	return readRoutes(m), err
}

// Certificate says whether the network did what was asked of it so far, within the usual bounds.
func (c *Client) Certificate(ctx context.Context) (fidelity.Certificate, error) {
	return c.certify(ctx, false)
}

// CertificateAnew is Certificate, and has counting begin again.
func (c *Client) CertificateAnew(ctx context.Context) (fidelity.Certificate, error) {
	return c.certify(ctx, true)
}

func (c *Client) certify(ctx context.Context, anew bool) (fidelity.Certificate, error) {
	m, err := ask(ctx, c, c.calls.Certify, &emudv1.CertifyRequest{Anew: anew})
	return certificateOf(m), err
}

// Shutdown ends the engine.
func (c *Client) Shutdown(ctx context.Context) error {
	_, err := ask(ctx, c, c.calls.Shutdown, &emudv1.ShutdownRequest{})
	return err
}
