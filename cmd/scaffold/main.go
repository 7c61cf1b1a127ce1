// Command scaffold is all of Scaffold in one binary; `scaffold --help` lists its parts.
package main

import (
	"os"

	"scaffold.dev/scaffold/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
