package labcmd

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab/timeline"
)

func labPlotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plot RESULT",
		Short: "Draw what a run measured, as SVG and PNG",
		Long: `Plot draws the series of a run over its time, with its steps. RESULT is the file that
"lab run --plot DIR" or "lab run -o json" wrote.`,
		Example: "  scaffold lab run examples/experiments/web.yaml --plot /tmp/web\n  scaffold lab plot /tmp/web/web.json",
		Args:    cobra.ExactArgs(1),
	}
	dir := cmd.Flags().String("dir", "", "where the files go (default: beside the result)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := command.Interruptible(cmd.Context(), func() (*timeline.Result, error) { return timeline.LoadResult(args[0]) })
		if err != nil {
			return labs.Fail(err)
		}
		if *dir == "" {
			*dir = filepath.Dir(args[0])
		}
		paths, err := r.Plot(*dir)
		if err != nil {
			return labs.Fail(err)
		}
		fmt.Fprintln(cmd.OutOrStdout(), strings.Join(paths, "\n"))
		return nil
	}
	return cmd
}
