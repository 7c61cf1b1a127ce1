package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/draining"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// A shutdown takes this host's instance of the service out of service before the program gets the signal
// that asks for its end.
type shutdown struct {
	service, endpoint string
	mode              string // "wait", "shed", "none", or "" for the service's policy
	limit             time.Duration
	w                 io.Writer

	begun   bool
	stop    context.CancelFunc
	over    sync.WaitGroup
	drained chan os.Signal // the signal that may now pass
}

// holds takes the first signal that asks for an end and begins to drain; it lets all others pass. The
// second such signal ends the wait.
func (f *shutdown) holds(s os.Signal) bool {
	if f.mode == "none" || s != syscall.SIGTERM && s != syscall.SIGINT {
		return false
	}
	if f.begun {
		f.stop()
		return false
	}
	ctx, stop := context.WithTimeout(context.Background(), f.limit)
	f.begun, f.stop = true, stop
	f.over.Go(func() { f.run(ctx, s) }) // ends by the limit, the second signal or done
	return true
}

// run drains and lets the signal pass, unless a second one has passed in its place.
func (f *shutdown) run(ctx context.Context, s os.Signal) {
	left, err := f.drain(ctx)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return
	case ctx.Err() != nil, connect.CodeOf(err) == connect.CodeDeadlineExceeded: // the daemon may notice first
		f.say("%s: %v are over, %s left", f.service, f.limit, command.Count(left, "flow"))
	case err != nil && connect.CodeOf(err) != connect.CodeNotFound: // the program serves nothing yet
		f.say("%s is not drained: %v", f.service, remote.Explain(err, f.endpoint, ""))
	}
	f.drained <- s
}

// drain returns when no flow is left, or with how many there were when it had to stop.
func (f *shutdown) drain(ctx context.Context) (left uint32, err error) {
	client, base, err := api.Dial(f.endpoint)
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	stream, err := apiv1connect.NewLocalClient(client, base).DrainLocal(ctx, connect.NewRequest(&apiv1.DrainLocalRequest{Service: f.service, Mode: f.mode}))
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	shown := draining.NewCountdown(f.w, "scaffold: draining "+f.service)
	for stream.Receive() {
		left = stream.Msg().Flows
		if left > 0 || shown.Begun() {
			shown.Flows(left)
		}
		if left == 0 {
			return 0, nil
		}
	}
	return left, stream.Err()
}

// done gives the instance back: whatever serves on this host next is not drained.
func (f *shutdown) done() {
	if !f.begun {
		return
	}
	f.stop()
	f.over.Wait()
	if err := f.undrain(); err != nil { // that is, another program serves the name here too
		f.say("the drain of %s stays: %v", f.service, remote.Explain(err, f.endpoint, ""))
	}
}

func (f *shutdown) undrain() error {
	client, base, err := api.Dial(f.endpoint)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	stream, err := apiv1connect.NewLocalClient(client, base).DrainLocal(ctx, connect.NewRequest(&apiv1.DrainLocalRequest{Service: f.service, Undrain: true}))
	if err != nil {
		return err
	}
	defer stream.Close()
	stream.Receive() // the first word is its answer
	switch err := stream.Err(); connect.CodeOf(err) {
	case connect.CodeNotFound, connect.CodeUnimplemented: // nothing serves any more; there was no drain
		return nil
	default:
		return err
	}
}

func (f *shutdown) say(format string, args ...any) {
	fmt.Fprintf(f.w, "scaffold: "+format+"\n", args...)
}
