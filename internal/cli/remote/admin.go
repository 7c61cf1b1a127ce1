package remote

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/output"
)

// ListServices is the command that lists the services.
const ListServices = "scaffold service ls"

// Admin is what every command over the Admin API has: where to ask and how to print.
type Admin struct {
	*Remote
	*output.Flag
}

// AddAdmin gives a command the flags of what asks the Admin API.
func AddAdmin(cmd *cobra.Command) Admin {
	return Admin{Add(cmd.PersistentFlags()), output.Add(cmd.PersistentFlags())}
}
