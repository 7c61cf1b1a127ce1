package boost

import (
	"fmt"

	"scaffold.dev/scaffold/internal/cli/output"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// ofPath is what of the path between two agents binds, and what to do about it.
func ofPath(p *apiv1.BoostPath, from, to side) (what, then string) {
	seen := from.path(to.name)
	switch p.GetBound() {
	case "full":
		return fmt.Sprintf("the path is full: it carries %s/s from agent %s to %s%s", output.Bytes(p.Rate), from.name, to.name, seen),
			"it takes a path that carries more"
	case "others":
		return fmt.Sprintf("others' traffic fills the path: beside it agent %s sends %s/s to %s%s", from.name, output.Bytes(p.Rate), to.name, seen),
			fmt.Sprintf("it takes fewer others, or another share or weight in the file of %s: full takes most from others", from.name)
	case "loss":
		return fmt.Sprintf("loss by chance binds: %.2g%% of what agent %s sends to %s is lost without a queue, and CUBIC slows down to %s/s%s", 100*p.Loss, from.name, to.name, output.Bytes(p.Rate), seen),
			fmt.Sprintf("have BBR at %s: modprobe tcp_bbr, bbr in sysctl net.ipv4.tcp_allowed_congestion_control, reload the agent; or raise connections in its file", from.name)
	case "limit":
		return fmt.Sprintf("the limit of agent %s binds: it sends %s/s to %s%s", from.name, output.Bytes(p.Rate), to.name, seen),
			"raise limit in the file of " + from.name
	case "flow limit":
		return fmt.Sprintf("something on the way limits each connection: %d carry %s/s from agent %s to %s, each about as much as when they were fewer%s", p.Connections, output.Bytes(p.Rate), from.name, to.name, seen),
			fmt.Sprintf("it takes a way without that limit (a policer, one of several links); or raise connections in the file of %s, which finds up to 32 by itself", from.name)
	case "send buffer":
		return fmt.Sprintf("the socket buffers of agent %s bind: they hold what it sends to %s up for %.0f%% of the time%s", from.name, to.name, 100*p.Held, seen),
			fmt.Sprintf("raise the last number of sysctl net.ipv4.tcp_wmem at %s: twice what the path carries in a round trip", from.name)
	case "receive buffer":
		return fmt.Sprintf("the socket buffers of agent %s bind: they hold what %s sends to it up for %.0f%% of the time%s", to.name, from.name, 100*p.Held, seen),
			fmt.Sprintf("raise the last number of sysctl net.ipv4.tcp_rmem at %s: twice what the path carries in a round trip; then reload the agent", to.name)
	}
	return fmt.Sprintf("the path binds: agent %s has bytes that no connection to %s takes%s", from.name, to.name, seen),
		"it takes a path that carries more, or fewer others on this one"
}
