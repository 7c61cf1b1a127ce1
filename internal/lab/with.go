package lab

import (
	"context"
	"errors"
)

// With brings a lab up, calls use and takes the lab down, whatever happens. As with [Run], others
// cannot take it down meanwhile, and it goes when this process dies and the next lab command finds it.
func With(ctx context.Context, f *File, opt Options, use func(context.Context, *Lab) error) (err error) {
	l, err := up(ctx, f, opt, phaseRunning)
	if err != nil {
		return err
	}
	defer func() {
		opt.logf("lab %s: down", f.Name)
		err = errors.Join(err, l.remove())
	}()
	if err = use(ctx, l); ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = l.explain(ctx, err)
	}
	return err
}
