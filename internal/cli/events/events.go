package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// Command is `scaffold events`.
func Command() *cobra.Command {
	req := &apiv1.WatchEventsRequest{}
	since := ""
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what happened, who ordered what, and why",
		Long: `Events prints the last events, oldest first, and with -f goes on as they happen until interrupted. They are
kept in the controllers' store, through restarts and changes of leader: the last 4,096 that somebody ordered, and as
many that happened. Of what was ordered they say by whom, from where, and the values before and after.
With -o json each is one line of JSON. docs/operate.md lists the kinds.`,
		Example: `  scaffold events
  scaffold events --by alice --since 24h
  scaffold events --audit --of web -o json
  scaffold events -f
  scaffold events -f -o json | jq -r 'select(.kind == "instance.down") | .text'`,
		Args: cobra.NoArgs,
	}
	a := remote.AddAdmin(cmd)
	cmd.Flags().BoolVarP(&req.Follow, "follow", "f", false, "go on as they happen")
	cmd.Flags().Uint32VarP(&req.History, "last", "n", 100, "how many past events to begin with")
	cmd.Flags().StringVar(&req.By, "by", "", "only what this administrator, host, router, token or local user ordered; a role alone, such as admin, means all of it")
	cmd.Flags().StringVar(&req.Of, "of", "", "only what is about this service, host, router, token, ...")
	cmd.Flags().StringVar(&since, "since", "", "only from then on: a duration such as 24h, or a time such as 2026-03-01 or 2026-03-01T14:00:00Z")
	cmd.Flags().BoolVar(&req.Audit, "audit", false, "only what somebody ordered, or was refused")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if since != "" {
			at, err := parseSince(since, time.Now())
			if err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			req.SinceUnixMs = at.UnixMilli()
		}
		if (since != "" || req.By != "" || req.Of != "" || req.Audit) && !cmd.Flags().Changed("last") {
			req.History = 2 * 4096 // all that there are: the conditions choose
		}
		client, endpoint, err := a.DialAdmin()
		if err != nil {
			return err
		}
		stream, err := client.WatchEvents(cmd.Context(), connect.NewRequest(req))
		if err != nil {
			return endOfStream(cmd.Context(), err, req.Follow, false, endpoint)
		}
		defer stream.Close()
		began := false
		for stream.Receive() {
			began = true
			if (req.By != "" || req.Audit) && stream.Msg().Time == "" {
				return exit.Failf(exit.Failed, "`scaffold upgrade` shows who runs what", "the controller at %s is of an older version, which does not know who ordered what", endpoint)
			}
			if err := printEvent(a, cmd.OutOrStdout(), stream.Msg()); err != nil {
				return err
			}
		}
		return endOfStream(cmd.Context(), stream.Err(), req.Follow, began, endpoint)
	}
	return cmd
}

// endOfStream says why there are no more events. An interrupt of the reader is the ordinary end that it is; a controller
// that ends closes the stream in good order, or breaks it off, and gives no reason.
func endOfStream(ctx context.Context, err error, follow, began bool, endpoint string) error {
	switch {
	case ctx.Err() != nil, err == nil && !follow:
		return nil
	case err != nil && (connect.IsWireError(err) || !began && !errors.Is(err, io.ErrUnexpectedEOF)): // refused, or nobody there
		return remote.Explain(err, endpoint, "")
	}
	return exit.Failf(exit.Unreachable, "`scaffold events` asks again: a controller's start and end are events, too", "the controller at %s ended, or the way to it: no more events come from there", endpoint)
}

func printEvent(a remote.Admin, w io.Writer, e *apiv1.Event) error {
	at := time.UnixMilli(e.UnixMs)
	if a.JSON() {
		e.Time = output.OrElse(e.Time, at.UTC().Format(time.RFC3339)) // of a controller of before
		return output.WriteJSON(w, e, "")
	}
	by := ""
	if e.By != nil {
		by = " (by " + actorName(e.By) + ")"
	}
	_, err := fmt.Fprintf(w, "%s  %-18s %-10s %s%s\n", at.Local().Format("2006-01-02 15:04:05.000"), e.Kind, e.Subject, e.Text, by)
	return err
}

// actorName is who ordered something, for people.
func actorName(a *apiv1.Actor) string {
	var parts []string
	switch {
	case a.Role == "local" && a.Uid != nil:
		parts = append(parts, fmt.Sprintf("%s, uid %d, on the controller's machine", a.Name, *a.Uid))
	case a.Role == "local":
		parts = append(parts, a.Name+" on the machine of controller "+a.Via)
	default:
		parts = append(parts, strings.TrimSpace(a.Role+" "+a.Name))
	}
	if a.User != "" {
		parts = append(parts, "asked by its user "+a.User)
	}
	if a.Address != "" {
		parts = append(parts, "from "+a.Address)
	}
	return strings.Join(parts, ", ")
}

// parseSince reads a duration that goes back from now, or a time; a time without a zone is local.
func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return now, fmt.Errorf("--since %q: want a duration such as 24h, or a time such as 2026-03-01 or 2026-03-01T14:00:00Z", text)
}
