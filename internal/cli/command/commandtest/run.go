package commandtest

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
)

// Run runs a line of a command line that has this command alone, and returns the exit code and what was said.
func Run(cmd *cobra.Command, stdin string, args ...string) (code int, stdout, stderr string) {
	root := &cobra.Command{Use: "scaffold", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(cmd)
	command.Prepare(root)
	var out, errs bytes.Buffer
	code = command.Run(root, args, strings.NewReader(stdin), &out, &errs, nil)
	return code, out.String(), errs.String()
}
