package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/wire"
)

// A versionInfo is what this program is and speaks.
type versionInfo struct {
	Scaffold string `json:"scaffold"`
	Commit   string `json:"commit"`
	Messages int    `json:"messages"` // version of those on the wire
	API      string `json:"api"`
	BuiltBy  string `json:"builtBy"`
}

func versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Say which version this is, and which protocols it speaks",
		Example: "  scaffold version\n  scaffold version -o json | jq -r .scaffold",
		Args:    cobra.NoArgs,
	}
	out := addOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versionInfo{obs.Version(), obs.Commit(), wire.Version, "scaffold.v1", runtime.Version() + " for " + runtime.GOOS + "/" + runtime.GOARCH}
		if out.json() {
			return writeValue(cmd.OutOrStdout(), v)
		}
		return drawTable(cmd.OutOrStdout(), func(t *table) {
			t.row("scaffold", v.Scaffold)
			t.row("commit", v.Commit)
			t.row("messages", fmt.Sprintf("version %d", v.Messages))
			t.row("API", v.API)
			t.row("built by", v.BuiltBy)
		})
	}
	return cmd
}
