package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/bench/checked"
)

func agentCheckedServe() *cobra.Command {
	var listen, id, record string
	var gap time.Duration
	cmd := &cobra.Command{
		Use: "checked-serve", Short: "Serve streams and datagrams whose every byte is checked", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if record != "" {
				return checked.ServeResuming(cmd.Context(), listen, record, gap, checked.NewLog(cmd.OutOrStdout(), id))
			}
			return checked.Serve(cmd.Context(), listen, gap, checked.NewLog(cmd.OutOrStdout(), id))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address and port, as in [fd5c::1]:7")
	cmd.Flags().StringVar(&record, "record", "", "directory that all instances share: go on with the streams of others")
	addNotes(cmd.Flags(), &id, &gap)
	return cmd
}

func agentChecked() *cobra.Command {
	var id, up, down string
	var l checked.Load
	cmd := &cobra.Command{
		Use: "checked", Short: "Open such streams, or ask such datagrams, until standard input ends", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if l.Up, err = checked.ParseRate(up); err != nil {
				return err
			}
			if l.Down, err = checked.ParseRate(down); err != nil {
				return err
			}
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			go func() { // ends with the process, or when there is nothing more to read
				io.Copy(io.Discard, cmd.InOrStdin()) //nolint:errcheck // its end is what counts
				stop()
			}()
			return l.Run(ctx, checked.NewLog(cmd.OutOrStdout(), id))
		},
	}
	f := cmd.Flags()
	addNotes(f, &id, &l.Gap)
	f.StringVar(&l.Network, "network", "tcp6", "tcp6 or udp6")
	f.StringVar(&l.To, "to", "", "address and port")
	f.IntVar(&l.Flows, "flows", 1, "flows at a time")
	f.StringVar(&up, "up", "0", "bytes per second from client to server, or bulk")
	f.StringVar(&down, "down", "0", "bytes per second from server to client, or bulk")
	f.DurationVar(&l.Step, "step", 10*time.Millisecond, "send what is due every so often")
	f.DurationVar(&l.Life[0], "life", 0, "shortest life of a flow")
	f.DurationVar(&l.Life[1], "life-max", 0, "longest; 0: until the end")
	f.Uint64Var(&l.Base, "base", 0, "number of the first flow")
	f.Uint64Var(&l.Seed, "seed", 1, "of bytes and lives")
	return cmd
}

func addNotes(f *pflag.FlagSet, id *string, gap *time.Duration) {
	f.StringVar(id, "id", "", "name of this program's node")
	f.DurationVar(gap, "gap", 5*time.Millisecond, fmt.Sprintf("note when nothing arrived for so long (beside the progress, every %v)", checked.ReportEvery))
}
