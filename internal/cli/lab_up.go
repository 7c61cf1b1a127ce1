package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/lab"
)

// loadLab reads a lab file; name, where given, replaces the one in it.
func loadLab(path, name string) (*lab.File, error) {
	f, err := lab.Load(path)
	if err != nil {
		return nil, labFail(err)
	}
	return f, rename(f, name)
}

func rename(f *lab.File, name string) error {
	if name == "" {
		return nil
	}
	f.Name = name
	return fail(ExitUsage, "", lab.CheckName(name))
}

func addLabName(cmd *cobra.Command) *string {
	return cmd.Flags().String("name", "", "name of the lab (default: the file's), so that one file can run twice at once")
}

// addPlane is the --plane flag of commands that bring a lab up.
func addPlane(cmd *cobra.Command) *string {
	return cmd.Flags().String("plane", "", "what the file's routers are: linux, openflow: Open vSwitch under the controller, or emulated: inside the engine (default: as the file says)")
}

func setPlane(f *lab.File, plane string) error {
	if plane == "" {
		return nil
	}
	return fail(ExitUsage, "", f.SetPlane(plane))
}

func labUpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "up FILE",
		Short:   "Bring a lab up and leave it up",
		Example: "  scaffold lab up examples/web.yaml\n  scaffold lab exec c1 -- curl http://web.svc/",
		Args:    cobra.ExactArgs(1),
	}
	name, plane := addLabName(cmd), addPlane(cmd)
	quiet := cmd.Flags().BoolP("quiet", "q", false, "print nothing while it works")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := loadLab(args[0], *name)
		if err == nil {
			err = setPlane(f, *plane)
		}
		if err != nil {
			return err
		}
		l, err := lab.Up(cmd.Context(), f, progress(cmd, *quiet))
		if err != nil {
			return labFail(err)
		}
		if !*quiet {
			fmt.Fprintf(cmd.OutOrStdout(), "lab %s is up: %d nodes. Go on with: scaffold lab status; scaffold lab exec NODE -- COMMAND\n",
				l.File.Name, len(l.File.Nodes))
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
		Args:    cobra.MaximumNArgs(1),
	}
	all := cmd.Flags().Bool("all", false, "remove all labs, also what crashes left")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opt := progress(cmd, false)
		if *all {
			removed, err := lab.DownAll(cmd.Context(), opt)
			if len(removed) > 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "removed:", strings.Join(removed, ", "))
			}
			return labFail(err)
		}
		name := strings.Join(args, "")
		swept, err := lab.Sweep(cmd.Context(), opt)
		if err == nil && !slices.Contains(swept, name) {
			err = lab.Down(cmd.Context(), name, opt)
		}
		if name == "" && len(swept) > 0 && errors.Is(err, lab.ErrNone) {
			err = nil // the only one was what a crash had left
		}
		return labFail(err)
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
			f, err := loadLab(args[0], "")
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "lab %s: %d nodes, %d links, %d services\n", f.Name, len(f.Nodes), len(f.Links), len(f.Services))
			}
			return err
		},
	}
}
