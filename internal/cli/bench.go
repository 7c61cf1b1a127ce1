package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/helper"
)

// benchProgram has the benchmarks: hosts have no need of it, so it is not in what is installed on them.
const benchProgram = "scaffold-bench"

const aboutBench = `The benchmarks are a program of their own, scaffold-bench, which is found beside this one, or in PATH; the Debian
package leaves it out. "make" in Scaffold's source builds both as bin/scaffold and bin/scaffold-bench.

"scaffold bench --help" lists the benchmarks where it is there.`

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                "bench BENCHMARK [FLAG...]",
		Short:              "Measure Scaffold beside a peer",
		Long:               aboutBench,
		Example:            "  scaffold bench --help\n  sudo scaffold bench path --check\n  sudo scaffold bench path -o json",
		DisableFlagParsing: true, // they are the other program's
		ValidArgsFunction:  completeBench,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			path, err := helper.Find(benchProgram)
			if err != nil {
				return withoutBench()
			}
			return helper.Exec(cmd.Context(), path, benchProgram, args)
		},
	}
	command.AllowEmptyArguments(cmd, "the benchmark's arguments")
	own := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if path, err := helper.Find(benchProgram); err == nil {
			helper.Exec(cmd.Context(), path, benchProgram, []string{"--help"}) //nolint:errcheck // which leaves our own words
		}
		own(cmd, args)
	})
	return cmd
}

func withoutBench() error {
	return exit.Failf(exit.Missing, "`make` in Scaffold's source builds bin/scaffold-bench; put it beside this program or into a directory of PATH",
		"bench: there is no program %s beside this one or in PATH", benchProgram)
}

// completeBench asks the other program, which answers as cobra's own programs do: a line for each word, and last what
// the shell is to do with them.
func completeBench(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	path, err := helper.Find(benchProgram)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ask, err := helper.Command(path, append(append([]string{cobra.ShellCompRequestCmd}, args...), typed)...)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	said, err := ask.Output()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := strings.Split(strings.TrimSpace(string(said)), "\n")
	last := len(words) - 1
	directive, err := strconv.Atoi(strings.TrimPrefix(words[last], ":"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return words[:last], cobra.ShellCompDirective(directive)
}
