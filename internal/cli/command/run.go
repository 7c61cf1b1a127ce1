package command

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/cli/exit"
)

// Run runs the command line and returns the exit code. Known is the exit code, and a hint, of errors that no command
// gave one. A signal that asks for an end ends the command's context.
func Run(root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer, known func(error) (exit.Code, string)) int {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchOutput(cancel)
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &checkedWriter{Writer: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	ran := false
	watchRuns(root, &ran)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !ran {
		err = misused(cmd, err)
	}
	if err == nil {
		err = out.err()
	}
	if ctx.Err() != nil {
		err = exit.Interrupted(err)
	}
	return exit.Report(stderr, err, known)
}

// endings are the signals that ask for an end: also that of a terminal that was closed. What nohup
// ignores stays ignored.
func endings() (all []os.Signal) {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			all = append(all, s)
		}
	}
	return all
}

// watchOutput calls end when the reader of this process's output has gone away, as in `scaffold demo |
// head`. The signal alone does not say so: it comes for every connection, too, that a peer has closed.
func watchOutput(end func()) {
	if signal.Ignored(syscall.SIGPIPE) {
		return
	}
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() { // ends with the process
		for range pipes {
			if unread(1) || unread(2) {
				end()
			}
		}
	}()
}

// unread reports whether a pipe or socket has no reader any more.
func unread(fd int32) bool {
	p := []unix.PollFd{{Fd: fd, Events: unix.POLLOUT}}
	_, err := unix.Poll(p, 0)
	return err == nil && p[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
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

// Prepare has all commands of a tree that is complete check their lines, and say in our words what is wrong with one.
func Prepare(root *cobra.Command) {
	ownTopics(root)
	countArguments(root)
	checkLines(root)
}
