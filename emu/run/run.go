// Package run makes a scaffold command whose emulated networks have router programs of one's own:
//
//	func main() { run.Main(map[string]run.Maker{"mine": newMine}) }
//
// The binary is scaffold with all its subcommands, in place of the other one: labs that it brings up have an engine that
// knows the programs, beside those that are shipped. A lab file whose network names it under engine has them with any
// scaffold.
package run

import (
	"maps"
	"os"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/cli"
	"scaffold.dev/scaffold/internal/lab/emud"
)

// A Setting is what a router's program is made from: the router's name, the parameters that the lab file gives it, and
// its addresses and ports for programs that forward by package forward.
type Setting = emud.Setting

// A Maker makes the program of a router. It is to refuse parameters that it does not know.
type Maker = emud.Maker

// Factory is a maker that needs the parameters alone.
func Factory(f emu.Factory) Maker {
	return func(s Setting) (emu.Program, error) { return f(s.Parameters) }
}

// Main runs the command line of this process and ends the process with its exit code. A program with the name of a
// shipped one takes its place.
func Main(programs map[string]Maker) {
	all := emud.Shipped()
	maps.Copy(all, programs)
	os.Exit(cli.MainLinked(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, cli.Linked{Programs: all}))
}
