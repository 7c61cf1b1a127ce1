// Package run makes a scaffold command whose controller has modules of one's own:
//
//	func main() { run.Main(mymodule.New()) }
//
// The binary is scaffold with all its subcommands, in place of the other one: its controld has the modules,
// where it drives switches (--openflow).
package run

import (
	"os"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/cli"
)

// Main runs the command line of this process and ends the process with its exit code.
func Main(modules ...controller.Module) {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, modules...))
}
