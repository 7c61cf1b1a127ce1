package cli

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/underlay/wg"
)

// wireguardCommand is the process that hostd and routerd start for their tunnels. It is not for people.
func wireguardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "wireguard",
		Short:  "Keep WireGuard for the daemon that started this process",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return wg.Run() },
	}
}
