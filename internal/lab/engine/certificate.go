package engine

import (
	"context"
	"errors"

	"scaffold.dev/scaffold/emu/fidelity"
	"scaffold.dev/scaffold/internal/lab/emud"
)

// ErrNone is returned by what is about emulated links and routers in a lab without any.
var ErrNone = errors.New("the lab has no emulated links or routers")

// Certificate says whether the engine did what was asked of it since its links got their parameters, or counting began
// anew.
func (e *Engine) Certificate(ctx context.Context) (*fidelity.Certificate, error) {
	return e.ask(ctx, (*emud.Client).Certificate)
}

// CertificateAnew is Certificate, and has counting begin again.
func (e *Engine) CertificateAnew(ctx context.Context) (*fidelity.Certificate, error) {
	return e.ask(ctx, (*emud.Client).CertificateAnew)
}

func (e *Engine) ask(ctx context.Context, what func(*emud.Client, context.Context) (fidelity.Certificate, error)) (*fidelity.Certificate, error) {
	client := e.Client()
	if client == nil {
		return nil, ErrNone
	}
	c, err := what(client, ctx)
	if err != nil {
		return nil, e.where(err)
	}
	return &c, nil
}

// OfRun is the certificate of a run, in which an engine that does not answer has not done what it was asked; nil where
// there is none.
func (e *Engine) OfRun(ctx context.Context) *fidelity.Certificate {
	c, err := e.Certificate(ctx)
	switch {
	case errors.Is(err, ErrNone):
		return nil
	case err != nil:
		return &fidelity.Certificate{Reasons: []string{err.Error()}}
	}
	return c
}
