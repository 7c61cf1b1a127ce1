package cli

import (
	"errors"
	"os/exec"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/lab"
)

func labExecCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "exec NODE -- COMMAND [ARGUMENT...]",
		Short:   "Run a command inside a node; its exit code is ours",
		Example: "  scaffold lab exec c1 -- curl http://web.svc/\n  scaffold lab exec --lab web r1 -- ip -6 route",
		Args:    cobra.MinimumNArgs(2),
	}
	cmd.Flags().SetInterspersed(false) // flags behind NODE are the command's
	name := addLab(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[1] == "--" {
			args = append(args[:1:1], args[2:]...)
		}
		if len(args) < 2 {
			return failf(ExitUsage, "", "which command? scaffold lab exec NODE -- COMMAND")
		}
		l, err := lab.Open(*name, lab.Options{})
		if err != nil {
			return labFail(err)
		}
		if l.File.Node(args[0]) == nil {
			return failf(ExitNotFound, "`scaffold lab status` lists the nodes", "lab %s has no node %q", l.File.Name, args[0])
		}
		err = l.Exec(args[0], args[1:]) // the command takes the place of this process
		if errors.Is(err, exec.ErrNotFound) {
			return fail(ExitNotFound, "", err)
		}
		return err
	}
	return cmd
}
