package lab

import (
	"context"
	"errors"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/state"
)

// With brings a lab up, calls use and takes the lab down, whatever happens. As with [Run], others
// cannot take it down meanwhile, and it goes when this process dies and the next lab command finds it.
func With(ctx context.Context, f *file.File, opt Options, use func(context.Context, *Lab) error) (err error) {
	l, err := up(ctx, f, opt, state.Running)
	if err != nil {
		return err
	}
	defer func() {
		opt.logf("lab %s: down", f.Name)
		err = errors.Join(err, l.remove())
	}()
	if err = use(ctx, l); err != nil && errors.Is(ctx.Err(), context.Canceled) {
		err = &interrupted{f.Name} // whatever it was that did not like to end
	}
	return err
}
