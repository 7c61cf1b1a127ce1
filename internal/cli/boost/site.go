package boost

import (
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func siteSet(a remote.Admin) *cobra.Command {
	s := &apiv1.BoostSite{}
	cmd := &cobra.Command{
		Use:   "set NAME --prefix PREFIX --agent NAME [--switch NAME]",
		Short: "Make a site, or give one other prefixes and agents",
		Long: `Set says which hosts are at a site, and which agents carry their connections: no other agent does. What was
said of its prefixes before is replaced, and of its agents where --agent is there. Agents may be named before they
have joined. One that is not named any more ends what it carries, by a reset: drain it first, and wait.

Agents are on the way of the hosts' packets, as a router is, unless --switch names OpenFlow switches of the network that
send them what they carry: then each agent is at a port of one of these.`,
		Example: `  scaffold boost site set east --prefix 192.0.2.0/24 --prefix 2001:db8:1::/48 --agent east-1 --agent east-2
  scaffold boost site set west --prefix 198.51.100.0/24 --agent west-1 --switch s2`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialBoost()
			if err != nil {
				return err
			}
			s.Name = args[0]
			answer, err := remote.Ask(cmd.Context(), client.SetBoostSite, s, endpoint, listSites)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), answer, func(t *output.Table) { drawSites(t, []*apiv1.BoostSite{answer}) })
		},
	}
	cmd.Flags().Var(&hostsFlag{more: true, take: func(text string) { s.Prefixes = append(s.Prefixes, text) }}, "prefix", "address or prefix of hosts at the site; repeat for more")
	cmd.Flags().StringSliceVar(&s.Agents, "agent", nil, "name of an agent that serves the site; repeat for more (default: those of before)")
	cmd.Flags().StringSliceVar(&s.Switches, "switch", nil, "name of a switch that sends connections to the agents at its ports; repeat for more (default: those of before)")
	cmd.Flags().BoolVar(&s.OnPath, "on-path", false, "no switches send connections to the agents any more: they are on the way of the hosts' packets")
	command.Exclusive(cmd, "switch on-path")
	cmd.MarkFlagRequired("prefix")
	return cmd
}

func siteRemove(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove a site that no entry needs", Example: "  scaffold boost site rm east", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialBoost()
			if err != nil {
				return err
			}
			answer, err := remote.Ask(cmd.Context(), client.RemoveBoostSite, &apiv1.RemoveBoostSiteRequest{Name: args[0]}, endpoint, listSites)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), answer, func(*output.Table) {})
		},
	}
}

func siteList(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the sites", Example: "  scaffold boost site ls", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := list(cmd, a)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), &apiv1.ListBoostResponse{Sites: all.Sites}, func(t *output.Table) { drawSites(t, all.Sites) })
		},
	}
}

func drawSites(t *output.Table, sites []*apiv1.BoostSite) {
	t.Row("NAME", "PREFIXES", "AGENTS", "SWITCHES")
	for _, s := range sites {
		t.Row(s.Name, strings.Join(s.Prefixes, ", "), strings.Join(s.Agents, ", "), strings.Join(s.Switches, ", "))
	}
}
