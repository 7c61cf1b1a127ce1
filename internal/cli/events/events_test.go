package events

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command/commandtest"
	"scaffold.dev/scaffold/internal/cli/exit"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// An ending controller tells of one event, and then its stream ends.
type ending struct {
	apiv1connect.UnimplementedAdminHandler
	how func() error
}

func (e *ending) WatchEvents(_ context.Context, _ *connect.Request[apiv1.WatchEventsRequest], s *connect.ServerStream[apiv1.Event]) error {
	if err := s.Send(&apiv1.Event{Kind: "host.join", Subject: "s1", Text: "joined at r1"}); err != nil {
		return err
	}
	return e.how()
}

func TestWhoFollowsEventsIsToldThatTheControllerEnded(t *testing.T) {
	for name, c := range map[string]struct {
		how    func() error
		follow bool
		code   exit.Code
		said   string
	}{
		"in good order":         {func() error { return nil }, true, exit.Unreachable, "ended"},
		"in the middle of it":   {func() error { panic(http.ErrAbortHandler) }, true, exit.Unreachable, "ended"},
		"before it told all":    {func() error { panic(http.ErrAbortHandler) }, false, exit.Unreachable, "ended"},
		"all that there is":     {func() error { return nil }, false, exit.OK, ""},
		"it gives its own word": {func() error { return connect.NewError(connect.CodeResourceExhausted, errors.New("too slow")) }, true, exit.Refused, "too slow"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			mux.Handle(apiv1connect.NewAdminHandler(&ending{how: c.how}))
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- api.Serve(ctx, mux, l) }()
			defer func() { cancel(); <-served }()
			argv := []string{"events", "--api", "unix:" + path, fmt.Sprintf("-f=%t", c.follow)}
			code, out, said := commandtest.Run(Command(), "", argv...)
			if code != int(c.code) || !strings.Contains(said, c.said) || strings.Contains(said, "EOF") || strings.Count(out, "joined") != 1 {
				t.Errorf("%v: exit code %d, want %d and %q\n%s%s", argv, code, c.code, c.said, out, said)
			}
		})
	}
}
