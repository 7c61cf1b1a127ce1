package labcmd

import (
	"errors"
	"os/exec"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
)

func labExecCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "exec NODE -- COMMAND [ARGUMENT...]",
		Short:   "Run a command inside a node; its exit code is ours",
		Example: "  scaffold lab exec c1 -- curl http://web.svc/\n  scaffold lab exec r1 --lab web -- ip -6 route\n  scaffold lab exec --lab web r1 ip -6 route",
	}
	cmd.Flags().SetInterspersed(false)
	command.AllowEmptyArguments(cmd, "the program's arguments")
	name := addLab(cmd)
	var argv []string
	cmd.Args = func(cmd *cobra.Command, args []string) (err error) {
		argv, err = afterNode(cmd, args)
		return err
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		l, err := lab.Open(*name, lab.Options{})
		if err != nil {
			return labs.Fail(err)
		}
		if l.File.Node(args[0]) == nil {
			return exit.Failf(exit.NotFound, "`scaffold lab status` lists the nodes", "lab %s has no node %q", l.File.Name, args[0])
		}
		err = l.Exec(args[0], argv) // the command takes the place of this process
		if errors.Is(err, exec.ErrNotFound) {
			return exit.Fail(exit.NotFound, "", err)
		}
		return err
	}
	return cmd
}

// afterNode is the command behind NODE. Flags between the two are ours, those behind the command's name are its own.
func afterNode(cmd *cobra.Command, args []string) (argv []string, err error) {
	if len(args) == 0 {
		return nil, errors.New("which node? scaffold lab exec NODE -- COMMAND")
	}
	flags := cmd.Flags()
	if err := flags.Parse(args[1:]); err != nil {
		return nil, err
	}
	if help, _ := flags.GetBool("help"); help {
		return nil, pflag.ErrHelp
	}
	if flags.NArg() == 0 {
		return nil, errors.New("which command? scaffold lab exec NODE -- COMMAND")
	}
	return flags.Args(), nil
}
