package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/bpf/features"
	"scaffold.dev/scaffold/internal/store"
)

// An ExitCode is what the process returns. The values are part of the interface: docs/operate.md.
type ExitCode int

// The exit codes.
const (
	ExitOK          ExitCode = 0
	ExitFailed      ExitCode = 1
	ExitUsage       ExitCode = 2
	ExitNotFound    ExitCode = 3
	ExitRefused     ExitCode = 4
	ExitUnreachable ExitCode = 5
	ExitMissing     ExitCode = 6
	ExitUnmet       ExitCode = 7
)

var exitCodes = []struct {
	code    ExitCode
	meaning string
}{
	{ExitOK, "done"},
	{ExitFailed, "failed for a reason that none of the others names"},
	{ExitUsage, "bad command line or bad input: an unknown flag, a malformed name, a topology file with an error"},
	{ExitNotFound, "no such service, host, flow, lab or file"},
	{ExitRefused, "refused by policy or state: the name is taken, the service still has instances, the last instance would go"},
	{ExitUnreachable, "no daemon or controller answers"},
	{ExitMissing, "a permission, a kernel feature or a program is missing"},
	{ExitUnmet, "it ran, but what it checks does not hold: bench --check, demo, lab run, doctor, diff, upgrade --check, host drain --dry-run"},
}

func exitCodesTopic() *cobra.Command {
	var text strings.Builder
	text.WriteString("Every command ends with one of these exit codes:\n\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&text, "  %d  %s\n", e.code, e.meaning)
	}
	text.WriteString("\n\"scaffold run\" and \"scaffold lab exec\" end with the exit code of the program that they ran.")
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: text.String()}
}

// exitError carries an exit code and a hint beside the error.
type exitError struct {
	code ExitCode
	hint string
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// fail gives err an exit code and a hint at what to do ("" where there is none). The innermost code
// and hint win: who was nearest to the cause knew best.
func fail(code ExitCode, hint string, err error) error {
	var inner *exitError
	if err == nil || errors.As(err, &inner) {
		return err
	}
	return &exitError{code, hint, err}
}

// failf is fail with an error made here.
func failf(code ExitCode, hint, format string, args ...any) error {
	return fail(code, hint, fmt.Errorf(format, args...))
}

// programExit ends with the code of a program that was run; the program has spoken for itself.
type programExit int

func (p programExit) Error() string {
	return fmt.Sprintf("the program ended with exit code %d", int(p))
}

// report prints err and returns the exit code that it calls for.
func report(stderr io.Writer, err error) int {
	var program programExit
	var known *exitError
	switch {
	case err == nil:
		return int(ExitOK)
	case outputClosed(err): // who read it has seen enough
		return int(ExitFailed)
	case errors.As(err, &program):
		return int(program)
	case err == context.Canceled: //nolint:errorlint // wrapped it says what was going on
		fmt.Fprintln(stderr, "scaffold: interrupted")
		return int(ExitFailed)
	case errors.As(err, &known):
		fmt.Fprintln(stderr, "scaffold:", err)
		if known.hint != "" {
			fmt.Fprintln(stderr, "hint:", known.hint)
		}
		return int(known.code)
	}
	fmt.Fprintln(stderr, "scaffold:", strings.ReplaceAll(err.Error(), "\n", "; ")) // joined errors have a line each
	return int(guess(stderr, err))
}

// outputClosed says that the reader of our output went away, as in `scaffold service ls | head -1`.
func outputClosed(err error) bool {
	var file *fs.PathError // a daemon that closes its connection gives another type
	return errors.As(err, &file) && errors.Is(file, syscall.EPIPE)
}

// guess finds the code of an error that nobody classified.
func guess(stderr io.Writer, err error) ExitCode {
	var missing *features.MissingError
	switch {
	case errors.As(err, &missing):
		fmt.Fprintln(stderr, "hint: scaffold doctor tells what this machine has")
		return ExitMissing
	case errors.Is(err, api.ErrRunning), errors.Is(err, store.ErrSchema), errors.Is(err, store.ErrInUse), errors.Is(err, syscall.EADDRINUSE):
		return ExitRefused
	case errors.Is(err, fs.ErrPermission):
		if os.Geteuid() != 0 {
			fmt.Fprintln(stderr, "hint: this needs root: try again with sudo")
		}
		return ExitMissing
	case errors.Is(err, fs.ErrNotExist):
		return ExitNotFound
	}
	return ExitFailed
}
