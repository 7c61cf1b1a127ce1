package cli

import (
	"context"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command line and returns the exit code. SIGINT and SIGTERM end the command's
// context: daemons then leave in good order.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := New()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ran := false
	watchRuns(root, &ran)
	err := root.ExecuteContext(ctx)
	if err != nil && !ran {
		err = fail(ExitUsage, "`scaffold help` and `--help` after any command say what there is", err)
	}
	return report(stderr, err)
}

// watchRuns notes that a command began to run: an error before that is one of usage.
func watchRuns(cmd *cobra.Command, ran *bool) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*ran = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		watchRuns(sub, ran)
	}
}
