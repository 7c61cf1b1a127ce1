package labapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/state"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
	"scaffold.dev/scaffold/internal/openflow/ovs"
)

func bad(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

func notFound(format string, args ...any) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf(format, args...))
}

// A coder gives the errors of all calls their codes.
type coder struct{}

// WrapUnary is for calls with one answer.
func (coder) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, q connect.AnyRequest) (connect.AnyResponse, error) {
		a, err := next(ctx, q)
		return a, fault(err)
	}
}

// WrapStreamingHandler is for streams.
func (coder) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error { return fault(next(ctx, conn)) }
}

// WrapStreamingClient has nothing to do here.
func (coder) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// fault says what went wrong in the terms of Connect, mistakes in a lab file each for itself.
func fault(err error) error {
	if _, coded := err.(*connect.Error); err == nil || coded { //nolint:errorlint // what is wrapped is what a daemon answered to us
		return err
	}
	f := connect.NewError(codeOf(err), err)
	var lines file.Errors
	if !errors.As(err, &lines) {
		return f
	}
	mistakes := &labv1.Mistakes{}
	for _, l := range lines {
		mistakes.Lines = append(mistakes.Lines, &labv1.Mistake{File: l.Path, Line: int32(l.Line), Text: l.Text})
	}
	if detail, err := connect.NewErrorDetail(mistakes); err == nil { // all of it stands in the text, too
		f.AddDetail(detail)
	}
	return f
}

func codeOf(err error) connect.Code {
	var lines file.Errors
	var busy *state.BusyError
	var missing *ovs.MissingError
	var nothing *emud.NotFoundError
	switch {
	case errors.As(err, &lines):
		return connect.CodeInvalidArgument
	case errors.Is(err, lab.ErrUp):
		return connect.CodeAlreadyExists
	case errors.As(err, &busy):
		return connect.CodeAborted
	case errors.Is(err, lab.ErrNone), errors.Is(err, engine.ErrNone), errors.As(err, &nothing), errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return connect.CodeNotFound
	case errors.Is(err, lab.ErrRoot), errors.As(err, &missing), errors.Is(err, emud.ErrGone), errors.Is(err, context.Canceled):
		return connect.CodeUnavailable
	}
	return connect.CodeUnknown
}

// engineFault is for what the engine was asked in words of the caller: what it refuses was badly asked for.
func engineFault(err error) error {
	if err != nil && codeOf(err) == connect.CodeUnknown {
		return bad("%w", err)
	}
	return err
}

// fail answers a call that none of the schema's methods sees.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	connect.NewErrorWriter().Write(w, r, err) //nolint:errcheck // the other side went away
}
