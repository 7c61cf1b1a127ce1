package daemons

import (
	"encoding/json"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/host/underlay/wg"
	"scaffold.dev/scaffold/internal/linux/priority"
)

// WireGuard is the process that hostd and routerd start for their tunnels. It is not for people.
func WireGuard() *cobra.Command {
	var alone string
	cmd := &cobra.Command{
		Use:    "wireguard",
		Short:  "Keep WireGuard for the daemon that started this process",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if alone == "" {
				_ = priority.Ordinary(os.Getpid()) // what it carries is as urgent as any program: the daemon's level is not for it
				return wg.Run()
			}
			var a wg.Alone
			if err := json.Unmarshal([]byte(alone), &a); err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
			defer stop()
			return a.Run(ctx, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&alone, "alone", "", "be wireguard-go by itself, for bench tunnel: JSON")
	return cmd
}
