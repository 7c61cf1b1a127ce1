package labcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
)

// loadLab reads a lab file; name, where given, replaces the one in it.
func loadLab(ctx context.Context, path, name string) (*file.File, error) {
	f, err := command.Interruptible(ctx, func() (*file.File, error) { return file.Load(path) })
	if err != nil {
		return nil, labs.Fail(err)
	}
	return f, labs.Rename(f, name)
}

func labUpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "up FILE",
		Short:   "Bring a lab up and leave it up",
		Example: "  scaffold lab up examples/web.yaml\n  scaffold lab exec c1 -- curl http://web.svc/",
		Args:    cobra.ExactArgs(1),
	}
	name, plane := labs.AddName(cmd), labs.AddPlane(cmd)
	quiet := cmd.Flags().BoolP("quiet", "q", false, "print nothing while it works")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := loadLab(cmd.Context(), args[0], *name)
		if err == nil {
			err = labs.SetPlane(f, *plane)
		}
		if err != nil {
			return err
		}
		l, err := lab.Up(cmd.Context(), f, labs.Progress(cmd, *quiet))
		if err != nil {
			return labs.Fail(err)
		}
		if !*quiet {
			fmt.Fprintf(cmd.OutOrStdout(), "lab %s is up: %s. Go on with: scaffold lab status; scaffold lab exec NODE -- COMMAND\n",
				l.File.Name, command.Count(uint32(len(l.File.Nodes)), "node"))
		}
		return nil
	}
	return cmd
}

func labDownCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "down [NAME]",
		Short:   "Remove a lab: the named one, or the only one",
		Example: "  scaffold lab down\n  scaffold lab down --all",
		Args: cobra.MatchAll(cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && command.Typed(cmd, "all") {
				return fmt.Errorf("%s: %q, or --all: which one?", cmd.CommandPath(), args[0])
			}
			return nil
		}),
	}
	all := cmd.Flags().Bool("all", false, "remove all labs, also what crashes left")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opt := labs.Progress(cmd, false)
		if *all {
			removed, err := lab.DownAll(cmd.Context(), opt)
			if len(removed) > 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "removed:", strings.Join(removed, ", "))
			}
			return labs.Fail(err)
		}
		name := strings.Join(args, "")
		swept, err := lab.Sweep(cmd.Context(), opt)
		if err == nil && !slices.Contains(swept, name) {
			err = lab.Down(cmd.Context(), name, opt)
		}
		if name == "" && len(swept) > 0 && errors.Is(err, lab.ErrNone) {
			err = nil // the only one was what a crash had left
		}
		return labs.Fail(err)
	}
	return cmd
}

func labCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "check FILE",
		Short:   "Say what is wrong with a lab file; needs no root",
		Example: "  scaffold lab check examples/web.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := loadLab(cmd.Context(), args[0], "")
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "lab %s: %s, %s, %s\n", f.Name,
					command.Count(uint32(len(f.Nodes)), "node"), command.Count(uint32(len(f.Links)), "link"), command.Count(uint32(len(f.Services)), "service"))
			}
			return err
		},
	}
}
