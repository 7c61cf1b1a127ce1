package cli

import (
	"errors"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/controller/store"
)

// known is the exit code of errors of the parts, with a hint.
func known(err error) (exit.Code, string) {
	switch {
	case errors.Is(err, api.ErrRunning), errors.Is(err, store.ErrSchema), errors.Is(err, store.ErrInUse), errors.Is(err, store.ErrDamaged):
		return exit.Refused, ""
	}
	return exit.OK, ""
}
