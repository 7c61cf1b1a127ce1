// Package labs is what commands share that bring a lab up: their flags, the files that ship inside the binary, and the exit
// codes of what goes wrong.
package labs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/examples"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/openflow/ovs"
)

// Fail gives errors of package lab their exit codes.
func Fail(err error) error {
	var busy *state.BusyError
	var bad file.Errors
	var missing *ovs.MissingError
	var nothing *emud.NotFoundError
	switch {
	case errors.As(err, &nothing), errors.Is(err, engine.ErrNone):
		return exit.Fail(exit.NotFound, "", err)
	case errors.Is(err, emud.ErrGone):
		return exit.Fail(exit.Unreachable, "", err)
	case errors.Is(err, lab.ErrRoot), errors.As(err, &missing):
		return exit.Fail(exit.Missing, "", err)
	case errors.Is(err, lab.ErrNone):
		return exit.Fail(exit.NotFound, "bring one up: scaffold lab up FILE", err)
	case errors.As(err, &busy):
		return exit.Fail(exit.Refused, "", err)
	case errors.As(err, &bad), errors.Is(err, syscall.EISDIR):
		return exit.Fail(exit.Usage, "", err)
	case errors.Is(err, lab.ErrUp):
		return exit.Fail(exit.Refused, "", err)
	case errors.Is(err, fs.ErrNotExist):
		return exit.Fail(exit.NotFound, "", err)
	}
	return err
}

// Progress prints what a lab does, for people, on stderr.
func Progress(cmd *cobra.Command, quiet bool) lab.Options {
	if quiet {
		return lab.Options{}
	}
	return lab.Options{Log: func(format string, args ...any) { cmd.PrintErrf(format+"\n", args...) }}
}

// Rename gives a lab the name, where one is given.
func Rename(f *file.File, name string) error {
	if name == "" {
		return nil
	}
	f.Name = name
	return exit.Fail(exit.Usage, "", file.CheckName(name))
}

// AddName is the --name flag.
func AddName(cmd *cobra.Command) *string {
	return cmd.Flags().String("name", "", "name of the lab (default: the file's), so that one file can run twice at once")
}

// AddPlane is the --plane flag of commands that bring a lab up.
func AddPlane(cmd *cobra.Command) *string {
	return cmd.Flags().String("plane", "", "what the file's routers are: linux, openflow: Open vSwitch under the controller, or emulated: inside the engine (default: as the file says)")
}

// SetPlane has a lab run on the plane, where one is given.
func SetPlane(f *file.File, plane string) error {
	if plane == "" {
		return nil
	}
	return exit.Fail(exit.Usage, "", f.SetPlane(plane))
}

// Example reads a lab file that ships inside the binary; name, where given, replaces the one in it.
func Example(path, name string) (*file.File, error) {
	text, err := examples.Files.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("this binary holds no lab file %s: %w", path, err)
	}
	f, err := file.Parse("examples/"+path, text)
	if err != nil {
		return nil, err
	}
	return f, Rename(f, name)
}
