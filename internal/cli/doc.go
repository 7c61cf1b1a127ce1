// Package cli is the scaffold command line: main, the tree of commands, what shells complete of them, and the manual. The
// commands themselves are in the rooms below it, a room for each group of them; docs/architecture.md draws them.
//
// Commands speak to the daemons through their API alone. A failed command prints one line that says
// what went wrong and, where there is one, a hint at what to do; package exit lists the exit codes.
package cli
