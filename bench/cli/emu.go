package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench/emubench"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab/plot"
)

func benchEmu() *cobra.Command {
	var flags benchFlags
	var opt emubench.Options
	var dir string
	cmd := &cobra.Command{
		Use: "emu", Short: "How fast and how exact the emulated network is, beside kernel namespaces and Mininet", Args: cobra.NoArgs,
		Example: "  sudo scaffold bench emu --quick\n  sudo scaffold bench emu --check --to results",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, part := range opt.Only {
				if !slices.Contains(emubench.Parts(), part) {
					return exit.Failf(exit.Usage, "", "--only %q: want some of %s", part, strings.Join(emubench.Parts(), ", "))
				}
			}
			if os.Geteuid() != 0 {
				return exit.Failf(exit.Missing, "try again with sudo", "bench emu makes network namespaces and needs root")
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if opt.Product, err = product(cmd); err != nil {
				return err
			}
			opt.Engine, opt.Log = emubench.Child{self, "agent", "engine"}, labs.Progress(cmd, false).Log
			res, err := emubench.Run(cmd.Context(), opt)
			if err != nil {
				return cutShort(cmd, err)
			}
			if dir != "" {
				if err := saveFigure(res.WriteJSON, res.Figure(), dir, "emu"); err != nil {
					return err
				}
			}
			return flags.print(cmd, res)
		},
	}
	flags.out = addFormat(cmd)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	cmd.Flags().BoolVar(&opt.Quick, "quick", false, "fewer and shorter measurements in each part: three minutes for all of them")
	cmd.Flags().StringSliceVar(&opt.Only, "only", nil, "parts: "+strings.Join(emubench.Parts(), ", "))
	cmd.Flags().StringVar(&dir, "to", "", "directory for the rows (emu.json) and the figure (emu.svg)")
	return cmd
}

// saveFigure writes rows and figure of a benchmark.
func saveFigure(write func(io.Writer) error, f plot.Figure, dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	rows, err := os.Create(filepath.Join(dir, name+".json"))
	if err != nil {
		return err
	}
	defer rows.Close()
	if err := write(rows); err != nil {
		return err
	}
	if len(f.Panels) == 0 {
		return nil
	}
	svg, err := os.Create(filepath.Join(dir, name+".svg"))
	if err != nil {
		return err
	}
	defer svg.Close()
	if err := f.SVG(svg); err != nil {
		return fmt.Errorf("draw %s: %w", svg.Name(), err)
	}
	return nil
}

func agentEngine() *cobra.Command {
	return &cobra.Command{
		Use: "engine", Short: "Be a chain of emulated routers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return emubench.RunEngine(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
