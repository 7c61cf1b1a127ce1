// Command scaffold-bench measures Scaffold beside its peers. It is called as `scaffold bench`.
package main

import (
	"os"

	"scaffold.dev/scaffold/bench/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
