package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/wire"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Say which version this is, and which protocols it speaks",
		Example: "  scaffold version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return drawTable(cmd.OutOrStdout(), func(t *table) {
				t.row("scaffold", obs.Version())
				t.row("commit", obs.Commit())
				t.row("messages", fmt.Sprintf("version %d", wire.Version))
				t.row("API", "scaffold.v1")
				t.row("built by", runtime.Version()+" for "+runtime.GOOS+"/"+runtime.GOARCH)
			})
		},
	}
}
