package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

const listControllers = "scaffold controller ls"

func controllerCommand() *cobra.Command {
	cmd := group("controller", "Look at the network's controllers, and take one out")
	a := addAdmin(cmd)
	cmd.AddCommand(controllerList(a), controllerRemove(a))
	return cmd
}

func controllerList(a admin) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the controllers: who leads, who stands by, who is gone",
		Long: `Lists the controllers of the network. One leads. Those that stand by hand on what they are asked,
and one of them takes over when the leader is gone. One that joins learns the state first.

Each controller answers this itself, also while none leads.`,
		Example: "  scaffold controller ls\n  scaffold controller ls --api unix:/run/scaffold/controld.sock",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.dialAdmin()
			if err != nil {
				return err
			}
			all, err := ask(cmd.Context(), client.ListControllers, &apiv1.ListControllersRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			if all.Trouble != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "controller %s: this may be wrong: %s\n", all.Asked, all.Trouble)
			}
			return a.print(cmd.OutOrStdout(), all, func(t *table) { drawControllers(t, all.Controllers) })
		},
	}
}

func drawControllers(t *table, controllers []*apiv1.Controller) {
	t.row("NAME", "STATE", "ENDPOINTS", "PEER", "VERSION", "RUNS SINCE")
	for _, c := range controllers {
		t.row(c.Name, c.State, strings.Join(c.Endpoints, ","), c.Member, c.Version, ago(c.SinceUnixMs))
	}
}

func controllerRemove(a admin) *cobra.Command {
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
			client, endpoint, err := a.dialAdmin()
			if err != nil {
				return err
			}
			answer, err := ask(cmd.Context(), client.RemoveController, &apiv1.RemoveControllerRequest{Name: args[0], Force: force}, endpoint, listControllers)
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), answer, func(t *table) {
				t.row("controller " + args[0] + " is no longer one of the network's")
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also one that runs: it ends by itself then")
	return cmd
}
