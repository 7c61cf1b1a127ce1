package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/operate/obs"
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
	out := output.Add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versionInfo{obs.Version(), obs.Commit(), wire.Version, "scaffold.v1", runtime.Version() + " for " + runtime.GOOS + "/" + runtime.GOARCH}
		if out.JSON() {
			return output.WriteValue(cmd.OutOrStdout(), v)
		}
		return output.Draw(cmd.OutOrStdout(), func(t *output.Table) {
			t.Row("scaffold", v.Scaffold)
			t.Row("commit", v.Commit)
			t.Row("messages", fmt.Sprintf("version %d", v.Messages))
			t.Row("API", v.API)
			t.Row("built by", v.BuiltBy)
		})
	}
	return cmd
}
