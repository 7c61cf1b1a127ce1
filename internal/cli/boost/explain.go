package boost

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// explained is how many sessions are explained where more have these ends.
const explained = 5

func explain(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "explain CLIENT [SERVER]", Short: "Say what keeps a connection that is carried from being faster, and what to do",
		Long: `Explain names, for each direction of a connection, what binds it: the end that sends, the end that receives, an
agent's processor or memory, or the path between the agents, and what of that: what agents send, others' traffic, loss
by chance, an operator's limit, one that something on the way sets for each connection, or the kernel's socket buffers.
CLIENT and SERVER are addresses, with a port or without; of several connections the fastest are explained. An agent
looks for three intervals, of at least 200 ms and 8 round trips each, until it is sure.`,
		Example: "  scaffold boost explain 192.0.2.7\n  scaffold boost explain [2001:db8::7]:40022 [2001:db8:1::9]:443", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := &apiv1.ListBoostSessionsRequest{Client: args[0], Limit: explained}
			if len(args) > 1 {
				req.Server = args[1]
			}
			client, endpoint, err := a.DialBoost()
			if err != nil {
				return err
			}
			sessions, err := remote.Ask(cmd.Context(), client.ListBoostSessions, req, endpoint, listSessions)
			if err != nil {
				return err
			}
			all, err := remote.Ask(cmd.Context(), client.ListBoost, &apiv1.ListBoostRequest{}, endpoint, "")
			if err != nil {
				return err
			}
			if len(sessions.Sessions) == 0 {
				return exit.Failf(exit.NotFound, "`"+listSessions+"` lists what is carried, `"+listEntries+"` what is to be", "no connection of %s is carried", strings.Join(args, " to "))
			}
			return a.Print(cmd.OutOrStdout(), sessions, func(t *output.Table) { drawReasons(t, sessions, all.Agents) })
		},
	}
}

func drawReasons(t *output.Table, all *apiv1.ListBoostSessionsResponse, agents []*apiv1.BoostAgent) {
	known := map[string]*apiv1.BoostAgent{}
	for _, g := range agents {
		known[g.Name] = g
	}
	for _, s := range all.Sessions {
		near, far := side{"client", s.Near, known[s.Near]}, side{"server", s.Far, known[s.Far]}
		mode := ""
		if s.Rewritten {
			mode = " (rewrite: by rules of its own in the switches)"
		}
		t.Row(fmt.Sprintf("%s to %s, entry %s%s, carried by %s and %s for %s", s.Client, s.Server, output.OrElse(s.Entry, "none"), mode, s.Near, s.Far, output.Age(s.SinceUnixMs)))
		drawReason(t, "client to server", s.SendRate, s.SentBound, s.SentPath, near, far, "near", "far")
		drawReason(t, "server to client", s.ReceiveRate, s.ReceivedBound, s.ReceivedPath, far, near, "far", "near")
	}
	if left := int(all.Total) - len(all.Sessions); left > 0 {
		t.Row(fmt.Sprintf("and %d more: name the client's port", left))
	}
}

// A side is an end host's role, and the agent beside it.
type side struct {
	host, name string
	agent      *apiv1.BoostAgent // nil: the controller knows it no more
}

func drawReason(t *output.Table, way string, rate uint64, bound string, path *apiv1.BoostPath, from, to side, reads, writes string) {
	what, then := reason(bound, path, from, to, reads, writes)
	if bound == "source" && rate < quiet {
		what, then = fmt.Sprintf("agent %s has read all that the %s sent", from.name, from.host), ""
	}
	t.Row(fmt.Sprintf("  %s, %s/s: %s", way, output.Bytes(rate), what))
	if then != "" {
		t.Row("    " + then)
	}
}

// quiet is what a direction carries that is hardly used, bytes a second: that of a download's requests.
const quiet = 1000

// reason is what binds one direction, and what to do about it.
func reason(bound string, path *apiv1.BoostPath, from, to side, reads, writes string) (what, then string) {
	switch bound {
	case "source":
		return fmt.Sprintf("the %s binds: agent %s has read all that it sent", from.host, from.name),
			fmt.Sprintf("look at the program at the %s, and at the way from there to its agent: ss -ti", from.host)
	case "receiver":
		return fmt.Sprintf("the %s binds: agent %s has bytes for it that it does not take", to.host, to.name),
			fmt.Sprintf("look at the program at the %s, and at the way from its agent to it: ss -ti", to.host)
	case "path":
		return ofPath(path, from, to)
	case reads + " agent":
		return from.processor()
	case writes + " agent":
		return to.processor()
	case reads + " agent's memory":
		return from.memory(to.name)
	case writes + " agent's memory":
		return to.memory(from.name)
	}
	return "nothing binds for most of the time, or agents have not looked for long enough", ""
}

// path is what an agent has seen of its connections to another one.
func (s side) path(other string) string {
	for _, t := range s.agent.GetTrunks() {
		if t.Agent == other && t.Up {
			text := ""
			if t.RttUs > 0 {
				text = " (there and back in " + output.Short(time.Duration(t.RttUs)*time.Microsecond) + ")"
			}
			text += "; " + share(t.Resent, t.Sent) + " of all bytes went out again"
			if len(t.Ways) > 1 {
				text += "; its paths: " + ways(t.Ways)
			}
			return text
		}
	}
	return ""
}

func (s side) processor() (what, then string) {
	return fmt.Sprintf("the processor of agent %s binds: it has used %.0f%% of what it may", s.name, 100*s.agent.GetLoad()),
		"give its machine or its cgroup more, or have another agent at its site (scaffold boost site set)"
}

func (s side) memory(other string) (what, then string) {
	return fmt.Sprintf("the memory of agent %s binds: it is full of bytes on their way between it and %s", s.name, other),
		fmt.Sprintf("raise memory in the file of %s: what the path carries in a round trip, times the sessions that are to have it", s.name)
}
