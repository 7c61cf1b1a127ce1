package orders

import (
	"context"
	"errors"
	"strings"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/trust"
)

// Why orders are refused.
var (
	ErrConflict = errors.New("refused")
	ErrNoHost   = errors.New("no such host")
	ErrChanged  = errors.New("changed meanwhile") // somebody else was faster
)

// Error gives our errors the codes that the command line makes exit codes of.
func Error(err error) error {
	var known *connect.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, names.ErrUnknown), errors.Is(err, ErrNoHost):
		return connect.NewError(connect.CodeNotFound, err)
	case errors.Is(err, names.ErrExists):
		return connect.NewError(connect.CodeAlreadyExists, err)
	case errors.Is(err, names.ErrInvalid):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, ErrChanged):
		return connect.NewError(connect.CodeAborted, err)
	case errors.Is(err, ErrConflict):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return connect.NewError(connect.CodeUnavailable, err)
}

// RefusedCallKind is that of the event of a call that was refused.
const RefusedCallKind = "call.refuse"

// refused tells of an order that was not carried out because of what it was, not because it could not be saved.
func (x *Orders) refused(ctx context.Context, err error) {
	by := gate.ActorOf(ctx, x.Controller)
	code := connect.CodeOf(Error(err))
	if code == connect.CodeNotFound || code == connect.CodeInvalidArgument || code == connect.CodeUnavailable {
		return // typing mistakes are nobody's news
	}
	if by.Role == gate.RoleUnauthenticated || by.Role == string(trust.Controller) {
		return // of tokens the members tell; what the network orders itself is tried again
	}
	x.RefusedCall(by, "", err)
}

// RefusedCall tells of a call that was refused. It runs on any goroutine.
func (x *Orders) RefusedCall(by *apiv1.Actor, path string, err error) {
	unauthenticated := by.Role == gate.RoleUnauthenticated
	skipped, ok := x.refusing.Take(unauthenticated)
	if !ok {
		return
	}
	var attrs []string
	if path != "" {
		attrs = append(attrs, "call", events.Printable(events.Shortened(path)))
	}
	if skipped > 0 {
		attrs = append(attrs, "not_told", events.Number(skipped))
	}
	e := events.New(RefusedCallKind, strings.TrimSpace(by.Role+" "+by.Name), events.Because("a call was refused", strings.TrimPrefix(events.Said(err), "refused: ")), attrs...)
	e.By, e.Refused = by, true
	x.Loop.Post(func() {
		if !unauthenticated {
			x.History.Happened(e)
			return
		}
		e.Seq = x.History.Next()
		x.History.Announce(e)
	})
}
