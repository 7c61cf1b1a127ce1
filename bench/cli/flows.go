package cli

import (
	"context"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab/file"
)

func benchFlows() *cobra.Command {
	var flows, moves int
	cmd := benchOn("flows", "What a hundred thousand flows of one host take, and how soon they have moved", func(name string) (*file.File, error) {
		return labs.Example(movesFile, name)
	}, func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
		return bench.Flows(ctx, r, "check", flows, moves)
	})
	addSize(cmd.Flags(), &flows, "flows", "", 100000, "connections of one host")
	addSize(cmd.Flags(), &moves, "moves", "n", 3, "moves of the host")
	return cmd
}
