package members

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

const listControllers = "scaffold controller ls"

// ControllerCommand is `scaffold controller`.
func ControllerCommand() *cobra.Command {
	cmd := command.Group("controller", "Look at the network's controllers, and take one out")
	a := remote.AddAdmin(cmd)
	cmd.AddCommand(controllerList(a), controllerRemove(a))
	return cmd
}

func controllerList(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the controllers: who leads, who stands by, who is gone",
		Long: `Lists the controllers of the network. One leads. Those that stand by hand on what they are asked,
and one of them takes over when the leader is gone. One that joins learns the state first.

STATE is by the lease in the store, and where nobody leads by who answers: ANSWERS says whether each did
just now. Each controller answers this itself, also while none leads.`,
		Example: "  scaffold controller ls\n  scaffold controller ls --api unix:/run/scaffold/controld.sock",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialAdmin()
			if err != nil {
				return err
			}
			all, err := remote.Ask(cmd.Context(), client.ListControllers, &apiv1.ListControllersRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			if err := a.Print(cmd.OutOrStdout(), all, func(t *output.Table) { drawControllers(t, all.Controllers) }); err != nil || all.Trouble == "" {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "controller %s: %s\n", all.Asked, all.Trouble)
			if all.Next != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "next: %s\n", all.Next)
			}
			return nil
		},
	}
}

func drawControllers(t *output.Table, controllers []*apiv1.Controller) {
	t.Row("NAME", "STATE", "ANSWERS", "ENDPOINTS", "PEER", "VERSION", "RUNS SINCE")
	for _, c := range controllers {
		t.Row(c.Name, c.State, c.Answers, strings.Join(c.Endpoints, ","), c.Member, c.Version, output.Ago(c.SinceUnixMs))
	}
}

func controllerRemove(a remote.Admin) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Take out a controller that does not come back",
		Long: `Takes a controller out of the network, and out of the cluster that the state is in: one whose machine
is lost counts against the majority until then. To put another one in its place, start it with --join.

A controller that runs is to be stopped first. One that leads cannot be taken out.`,
		Example: "  scaffold controller remove c3",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialAdmin()
			if err != nil {
				return err
			}
			answer, err := remote.Ask(cmd.Context(), client.RemoveController, &apiv1.RemoveControllerRequest{Name: args[0], Force: force}, endpoint, listControllers)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), answer, func(t *output.Table) {
				t.Row("controller " + args[0] + " is no longer one of the network's")
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also one that runs: it ends by itself then")
	return cmd
}
