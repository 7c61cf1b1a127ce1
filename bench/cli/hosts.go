package cli

import (
	"context"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/hosts"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab/file"
)

func benchCrowd() *cobra.Command {
	var flags benchFlags
	var size bench.CrowdSize
	var trust string
	cmd := &cobra.Command{
		Use: "crowd", Short: "How soon ten thousand hosts have joined one controller", Args: cobra.NoArgs,
		Long: `How soon ten thousand hosts have joined one controller.

The hosts, and the routers that they hang on, exist on their streams to the
controller alone, each by a connection of its own; the controller, its store
and one more router are real.`,
		Example: "  sudo scaffold bench crowd --check\n  sudo scaffold bench crowd --hosts 1000 --routers 8 --trust keys -o json",
		PreRunE: func(*cobra.Command, []string) error {
			if err := size.Check(); err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			rep, err := flags.onText(cmd, bench.CrowdLab, trust, func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
				return bench.Crowd(ctx, r, size)
			})
			if err != nil {
				return err
			}
			return flags.keep(cmd, rep)
		},
	}
	flags.out, flags.name = addFormat(cmd), labs.AddName(cmd)
	flags.addTo(cmd)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	cmd.Flags().StringVar(&trust, "trust", "open", "open, or keys: hosts prove who they are")
	addSize(cmd.Flags(), &size.Hosts, "hosts", "", 10000, "hosts that join")
	addSize(cmd.Flags(), &size.Routers, "routers", "", 40, "routers that they hang on")
	addSize(cmd.Flags(), &size.Services, "services", "", 1000, "services")
	addSize(cmd.Flags(), &size.Each, "each", "", 2, "services that one host serves")
	addSize(cmd.Flags(), &size.AtOnce, "at-once", "", 1000, "hosts that are about to join, at most")
	addSize(cmd.Flags(), &size.Changes, "changes", "n", 50, "changes to measure once all are there")
	addExtra(cmd.Flags(), &size.Rest, "rest", 10, "seconds in which hosts only tell their load")
	return cmd
}

// onText runs a benchmark on a lab that is written in the program.
func (flags *benchFlags) onText(cmd *cobra.Command, text, trust string, run func(context.Context, *bench.Rig) (bench.Report, error)) (bench.Report, error) {
	if trust != "open" && trust != "keys" {
		return bench.Report{}, exit.Failf(exit.Usage, "", "--trust %q: want open or keys", trust)
	}
	f, err := file.Parse("bench.yaml", []byte(text))
	if err == nil {
		err = labs.Rename(f, *flags.name)
	}
	if err != nil {
		return bench.Report{}, err
	}
	f.Network.Trust = trust
	return flags.on(cmd, f, run)
}

func agentHosts() *cobra.Command {
	return &cobra.Command{
		Use: "hosts", Short: "Be many hosts and routers, as standard input says", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return hosts.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
