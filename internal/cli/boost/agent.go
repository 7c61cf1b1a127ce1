package boost

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/trust"
)

func agentList(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the agents, what they carry, and their trunks",
		Long: `Ls lists the agents. STATE is here, draining, or away: such an agent has lost its controller, and goes on with
what it was told last; how it is nobody knows then. Where its machine forwards nothing of a family of addresses STATE says so: at
a switch it has of that family only connections of names and of entries with the mode rewrite. AT is the port of a switch where it
was seen. SESSIONS are connections that it carries, LOAD is its share of the processors that it may use. TRUNKS are its connections to other agents, each with their
number and the shortest round trip, or down; where there are several paths, each of these follows with its two addresses, what of
it binds, or why it is lost. A session is counted at both of its agents.`,
		Example: "  scaffold boost agent ls", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := list(cmd, a)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), &apiv1.ListBoostResponse{Agents: all.Agents, Trust: all.Trust}, func(t *output.Table) { drawAgents(t, all.Agents) })
		},
	}
}

func drawAgents(t *output.Table, agents []*apiv1.BoostAgent) {
	t.Row("NAME", "SITE", "STATE", "DOOR", "AT", "SESSIONS", "LOAD", "SENT", "RESENT", "TRUNKS")
	for _, g := range agents {
		state := g.State
		switch {
		case g.Error != "":
			state += ": " + g.Error
		case g.State == "here" && g.Site == "":
			state += ": no site names it"
		case len(g.Stops) > 0:
			state += ": forwards no " + lane.Families(g.Stops).String()
		}
		if g.State == "away" { // nobody knows how it is
			t.Row(g.Name, output.OrElse(g.Site, "none"), state, doors(g), place(g), "-", "-", "-", "-", "-")
			continue
		}
		t.Row(g.Name, output.OrElse(g.Site, "none"), state, doors(g), place(g), g.Sessions, fmt.Sprintf("%.0f%%", 100*g.Load), output.Bytes(g.Sent), share(g.Resent, g.Sent), trunks(g.Trunks))
	}
}

// doors are where others reach an agent.
func doors(g *apiv1.BoostAgent) string {
	return strings.Join(append([]string{g.Door}, g.Paths...), " ")
}

// place is the port of the switch at which an agent was seen.
func place(g *apiv1.BoostAgent) string {
	if g.Switch == "" {
		return "-"
	}
	return g.Switch + ":" + g.SwitchPort
}

func share(part, of uint64) string {
	if of == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(of))
}

func trunks(all []*apiv1.BoostTrunk) (text string) {
	for i, t := range all {
		if i > 0 {
			text += ", "
		}
		switch {
		case !t.Up:
			text += t.Agent + " down"
		case t.RttUs == 0:
			text += fmt.Sprintf("%s %d", t.Agent, t.Connections)
		default:
			text += fmt.Sprintf("%s %d x %s", t.Agent, t.Connections, output.Short(time.Duration(t.RttUs)*time.Microsecond))
		}
		if len(t.Ways) > 1 {
			text += " (" + ways(t.Ways) + ")"
		}
	}
	return text
}

// ways are the paths of a trunk that has several.
func ways(all []*apiv1.BoostWay) (text string) {
	for i, w := range all {
		if i > 0 {
			text += "; "
		}
		text += w.Own + " to " + w.Other
		switch {
		case !w.Up && w.Why != "":
			text += " lost: " + w.Why
		case !w.Up:
			text += " down"
		case w.RttUs > 0:
			text += fmt.Sprintf(" %d x %s", w.Connections, output.Short(time.Duration(w.RttUs)*time.Microsecond))
		default:
			text += fmt.Sprintf(" %d", w.Connections)
		}
		if by := w.GetPath().GetBound(); by != "" && w.Up {
			text += ", " + by
		}
	}
	return text
}

func agentDrain(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "drain NAME", Short: "Have an agent take no more connections; those that it carries go on",
		Example: "  scaffold boost agent drain east-1", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return drain(cmd, a, args[0], false) },
	}
}

func agentUndrain(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "undrain NAME", Short: "Have a drained agent take connections again",
		Example: "  scaffold boost agent undrain east-1", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return drain(cmd, a, args[0], true) },
	}
}

func drain(cmd *cobra.Command, a remote.Admin, name string, undrain bool) error {
	client, endpoint, err := a.DialBoost()
	if err != nil {
		return err
	}
	answer, err := remote.Ask(cmd.Context(), client.DrainBoostAgent, &apiv1.DrainBoostAgentRequest{Name: name, Undrain: undrain}, endpoint, listAgents)
	if err != nil {
		return err
	}
	return a.Print(cmd.OutOrStdout(), answer, func(t *output.Table) { drawAgents(t, []*apiv1.BoostAgent{answer}) })
}

func agentForget(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "forget NAME", Short: "Take an agent out of the network: its key is revoked, and what it carries is reset",
		Example: "  scaffold boost agent forget old", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialTrust()
			if err != nil {
				return err
			}
			answer, err := remote.Ask(cmd.Context(), client.Forget, &apiv1.ForgetRequest{Role: string(trust.Agent), Name: args[0]}, endpoint, listAgents)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), answer, func(t *output.Table) {
				t.Row(fmt.Sprintf("agent %s is forgotten: %s; only a new key and a new token let it in again", args[0], command.Counts(answer.Sessions, "session ended", "sessions ended")))
			})
		},
	}
}
