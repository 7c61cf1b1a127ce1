// Command scaffold is all of Scaffold in one binary; `scaffold --help` lists its parts.
package main

import (
	"fmt"
	"os"

	"scaffold.dev/scaffold/internal/cli"
)

func main() {
	if err := cli.New().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "scaffold:", err)
		os.Exit(1)
	}
}
