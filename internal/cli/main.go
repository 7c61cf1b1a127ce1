package cli

import (
	"io"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/lab/emud"
)

// Linked is what a binary has besides scaffold itself.
type Linked struct {
	Modules  []controller.Module // of the controller
	Programs emud.Programs       // that emulated routers may run, those shipped among them; nil for these alone
}

// Main runs the command line and returns the exit code. The controller has modules.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, modules ...controller.Module) int {
	return MainLinked(args, stdin, stdout, stderr, Linked{Modules: modules})
}

// MainLinked is Main of a binary that has more. A signal that asks for an end ends the command's context: daemons then
// leave in good order, labs are taken down.
func MainLinked(args []string, stdin io.Reader, stdout, stderr io.Writer, linked Linked) int {
	return command.Run(newRoot(linked), args, stdin, stdout, stderr, known)
}
