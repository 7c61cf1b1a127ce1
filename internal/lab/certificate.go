package lab

import (
	"context"
	"errors"

	"scaffold.dev/scaffold/emu/fidelity"
)

// ErrNoEngine is returned by what is about emulated links and routers in a lab without any.
var ErrNoEngine = errors.New("the lab has no emulated links or routers")

// Certificate says whether the engine did what was asked of it since its links got their parameters.
func (l *Lab) Certificate(ctx context.Context) (*fidelity.Certificate, error) {
	client := l.Engine()
	if client == nil {
		return nil, ErrNoEngine
	}
	c, err := client.Certificate(ctx)
	if err != nil {
		return nil, l.engineError(err)
	}
	return &c, nil
}

// certificate is that of a run, in which an engine that does not answer has not done what it was asked; nil where
// there is none.
func (l *Lab) certificate(ctx context.Context) *fidelity.Certificate {
	c, err := l.Certificate(ctx)
	switch {
	case errors.Is(err, ErrNoEngine):
		return nil
	case err != nil:
		return &fidelity.Certificate{Reasons: []string{err.Error()}}
	}
	return c
}
