package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/permit"
)

// permitEvery is how often run looks whether its permit's file has a new one.
const permitEvery = 2 * time.Second

// present gives the host's daemon the permits of a file.
func present(ctx context.Context, endpoint, file string) ([]byte, error) {
	text, err := command.ReadFile(ctx, file)
	if err != nil {
		return nil, err
	}
	all, err := permit.Parse(text)
	if err != nil {
		return nil, exit.Failf(exit.Usage, "", "%s: %v", file, err)
	}
	client, base, err := api.Dial(endpoint)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", err)
	}
	local := apiv1connect.NewLocalClient(client, base)
	for _, p := range all {
		ctx, cancel := context.WithTimeout(ctx, remote.AnswerTime)
		_, err := local.PresentPermit(ctx, connect.NewRequest(&apiv1.PresentPermitRequest{Permit: p.Append(nil)}))
		cancel()
		if err != nil {
			return nil, remote.Explain(err, endpoint, "")
		}
	}
	return text, nil
}

// keepPresenting gives it the new one when the file changes, until ctx ends.
func keepPresenting(ctx context.Context, w io.Writer, endpoint, file string, shown []byte) {
	tick := time.NewTicker(permitEvery)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		text, err := command.ReadFile(ctx, file)
		if err != nil || bytes.Equal(text, shown) {
			continue // the host has the old one
		}
		if text, err = present(ctx, endpoint, file); err == nil {
			shown, said = text, ""
		} else if err.Error() != said {
			said = err.Error()
			fmt.Fprintln(w, "scaffold: the new permit is not taken:", said)
		}
	}
}
