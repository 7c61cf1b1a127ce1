package boost

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
)

// Commands that list what may be meant.
const (
	listEntries  = "scaffold boost ls"
	listAgents   = "scaffold boost agent ls"
	listSites    = "scaffold boost site ls"
	listSessions = "scaffold boost session ls"
)

// Command is `scaffold boost`.
func Command() *cobra.Command {
	cmd := command.Group("boost", "Say which TCP connections agents carry over long paths, and look at the agents")
	a := remote.AddAdmin(cmd)
	cmd.AddCommand(entryList(a), allow(a), deny(a), explain(a),
		command.Group("site", "Say which hosts are at which site, and which agents serve them", siteSet(a), siteRemove(a), siteList(a)),
		command.Group("session", "Look at connections that are carried", sessionList(a)),
		command.Group("agent", "Look at agents, drain and forget them", agentList(a), agentDrain(a), agentUndrain(a), agentForget(a)))
	return cmd
}

// list asks for all that there is.
func list(cmd *cobra.Command, a remote.Admin) (*apiv1.ListBoostResponse, error) {
	client, endpoint, err := a.DialBoost()
	if err != nil {
		return nil, err
	}
	return remote.Ask(cmd.Context(), client.ListBoost, &apiv1.ListBoostRequest{}, endpoint, "")
}

func entryList(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List which connections are to be boosted, and who carries them",
		Long: `Ls lists the entries: connections of clients to servers that agents are to carry. STATE is boosts; waits, for
its time; over; or unserved, with the reason: such connections pass as they would without an entry. AGENTS are
those at the clients' site that take connections, and behind them those at the servers' site in the order in
which they are asked.`,
		Example: "  scaffold boost ls\n  scaffold boost ls -o json", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := list(cmd, a)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), all, func(t *output.Table) { drawEntries(t, all.Entries) })
		},
	}
}

func drawEntries(t *output.Table, entries []*apiv1.BoostEntry) {
	t.Row("NAME", "CLIENTS", "SERVERS", "PORT", "ACCEPT", "MODE", "FROM", "UNTIL", "STATE", "AGENTS")
	for _, e := range entries {
		state := e.State
		if e.Why != "" {
			state += ": " + e.Why
		}
		t.Row(e.Name, e.Client, e.Server, port(e.Port), cmp.Or(e.Accept, lane.Answered), cmp.Or(e.Mode, lane.Steered), moment(e.FromUnixMs), moment(e.UntilUnixMs), state, carriers(e.Lanes))
	}
}

func port(n uint32) string {
	if n == 0 {
		return "any"
	}
	return strconv.Itoa(int(n))
}

func moment(unixMs int64) string {
	if unixMs == 0 {
		return ""
	}
	return output.Second(unixMs / 1000)
}

// carriers are who takes an entry's connections, each way once: "e1 > w1, w2".
func carriers(lanes []*apiv1.BoostLane) string {
	var ways []string
	parts := map[string]int{}
	for _, l := range lanes {
		way := l.Near + " > " + strings.Join(l.Far, ", ")
		if parts[way]++; parts[way] == 1 {
			ways = append(ways, way)
		}
	}
	for i, way := range ways {
		if len(ways) > 1 {
			ways[i] = fmt.Sprintf("%s (%d/%d)", way, parts[way], len(lanes))
		}
	}
	return strings.Join(ways, "; ")
}
