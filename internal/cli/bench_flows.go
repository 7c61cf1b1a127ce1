package cli

import (
	"context"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/bench"
	"scaffold.dev/scaffold/internal/lab"
)

func benchFlows() *cobra.Command {
	var flows, moves int
	cmd := benchOn("flows", "What a hundred thousand flows of one host take, and how soon they have moved", func(name string) (*lab.File, error) {
		return exampleLab(movesFile, name)
	}, func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
		return bench.Flows(ctx, r, "check", flows, moves)
	})
	addSize(cmd.Flags(), &flows, "flows", "", 100000, "connections of one host")
	addSize(cmd.Flags(), &moves, "moves", "n", 3, "moves of the host")
	return cmd
}
