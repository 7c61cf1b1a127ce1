package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"scaffold.dev/scaffold/internal/bpf/features"
)

// Report prints err and returns the exit code that it calls for. Of an error that nobody classified, known says the code
// and a hint; 0 where it does not know it either. It may be nil.
func Report(stderr io.Writer, err error, known func(error) (Code, string)) int {
	var said Silent
	var told *Error
	switch {
	case err == nil:
		return int(OK)
	case outputClosed(err): // who read it has seen enough
		return int(Failed)
	case errors.As(err, &said):
		return int(said)
	case err == context.Canceled: //nolint:errorlint // wrapped it says what was going on
		fmt.Fprintln(stderr, "scaffold: interrupted")
		return int(Failed)
	case errors.As(err, &told):
		fmt.Fprintln(stderr, sentence(err.Error(), err))
		if told.Hint != "" {
			fmt.Fprintln(stderr, "hint:", told.Hint)
		}
		return int(told.Code)
	}
	fmt.Fprintln(stderr, sentence(strings.ReplaceAll(err.Error(), "\n", "; "), err)) // joined errors have a line each
	code, hint := OK, ""
	if known != nil {
		code, hint = known(err)
	}
	if code == OK {
		code, hint = guess(err)
	}
	if hint != "" {
		fmt.Fprintln(stderr, "hint:", hint)
	}
	return int(code)
}

// sentence is an error as people read it: with our name before it once, and without the name of the kernel's call that
// failed on a file.
func sentence(text string, err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		text = strings.Replace(text, path.Error(), path.Path+": "+path.Err.Error(), 1)
	}
	if strings.HasPrefix(text, "scaffold ") { // a command's own name
		return text
	}
	return "scaffold: " + text
}

// Interrupted is the error of a command that was asked to end: what it did when that happened is told, where that is
// known, and no call that was cut off is blamed.
func Interrupted(err error) error {
	var said Silent
	if err == nil || !errors.Is(err, context.Canceled) || errors.As(err, &said) || strings.Contains(err.Error(), "interrupted") {
		return err
	}
	doing := err.Error()
	for _, cause := range []string{context.Canceled.Error(), "canceled"} {
		doing = strings.TrimSuffix(strings.TrimSuffix(doing, cause), ": ")
	}
	if doing == "" {
		return context.Canceled
	}
	return &Error{Failed, "", fmt.Errorf("interrupted: %s", strings.ReplaceAll(doing, "\n", "; "))}
}

// outputClosed says that the reader of our output went away, as in `scaffold service ls | head -1`.
func outputClosed(err error) bool {
	var file *fs.PathError // a daemon that closes its connection gives another type
	return errors.As(err, &file) && errors.Is(file, syscall.EPIPE)
}

// guess is the code of what this machine lacks, and of what the kernel and the file system say.
func guess(err error) (Code, string) {
	var missing *features.MissingError
	switch {
	case errors.As(err, &missing):
		return Missing, "scaffold doctor tells what this machine has"
	case errors.Is(err, syscall.EADDRINUSE):
		return Refused, ""
	case errors.Is(err, fs.ErrPermission):
		if os.Geteuid() != 0 {
			return Missing, "this needs root: try again with sudo"
		}
		return Missing, ""
	case errors.Is(err, fs.ErrNotExist):
		return NotFound, ""
	}
	return Failed, ""
}
