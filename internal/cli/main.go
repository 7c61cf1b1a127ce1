package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command line and returns the exit code. A signal that asks for an end ends the
// command's context: daemons then leave in good order, labs are taken down.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
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

// endings are the signals that ask for an end: also those of a terminal that was closed and of a reader
// that went away, as in `scaffold demo | head`. What nohup ignores stays ignored.
func endings() (all []os.Signal) {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE} {
		if !signal.Ignored(s) {
			all = append(all, s)
		}
	}
	return all
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
