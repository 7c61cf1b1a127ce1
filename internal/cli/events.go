package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func eventsCommand() *cobra.Command {
	req := &apiv1.WatchEventsRequest{}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what happened: who joined, registered, failed, drained, and why",
		Long: `Events prints the last events, oldest first, and with -f goes on as they happen until interrupted.
With -o json each is one line of JSON. docs/operate.md lists the kinds.`,
		Example: `  scaffold events
  scaffold events -f
  scaffold events -f -o json | jq -r 'select(.kind == "instance.down") | .text'`,
		Args: cobra.NoArgs,
	}
	a := addAdmin(cmd)
	cmd.Flags().BoolVarP(&req.Follow, "follow", "f", false, "go on as they happen")
	cmd.Flags().Uint32VarP(&req.History, "last", "n", 100, "how many past events to begin with")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, endpoint, err := a.dialAdmin()
		if err != nil {
			return err
		}
		stream, err := client.WatchEvents(cmd.Context(), connect.NewRequest(req))
		if err != nil {
			return explain(err, endpoint, "")
		}
		defer stream.Close()
		for stream.Receive() {
			if err := a.printEvent(cmd.OutOrStdout(), stream.Msg()); err != nil {
				return err
			}
		}
		return endOfStream(cmd.Context(), stream.Err(), endpoint)
	}
	return cmd
}

// endOfStream takes an interrupt of the reader for the ordinary end that it is.
func endOfStream(ctx context.Context, err error, endpoint string) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return explain(err, endpoint, "")
}

func (a admin) printEvent(w io.Writer, e *apiv1.Event) error {
	if a.json() {
		return writeJSON(w, e, "")
	}
	_, err := fmt.Fprintf(w, "%s  %-18s %-10s %s\n", time.UnixMilli(e.UnixMs).Format("15:04:05.000"), e.Kind, e.Subject, e.Text)
	return err
}
