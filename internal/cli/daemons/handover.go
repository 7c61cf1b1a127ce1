package daemons

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"scaffold.dev/scaffold/internal/api"
)

// handOverSignal ends a daemon as --keep does, whatever its flags say: a restart sends it where an end
// would send SIGTERM. The units name it (RestartKillSignal=).
const handOverSignal = syscall.SIGUSR1

// handingOver returns a context that the signal ends too, with the cause that daemons look for.
func handingOver(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, handOverSignal)
	go func() { // ends with the context
		select {
		case <-signals:
			end(api.ErrHandOver)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		end(nil)
	}
}
