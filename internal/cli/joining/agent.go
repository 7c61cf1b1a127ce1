package joining

import (
	"context"
	"net/netip"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"

	"scaffold.dev/scaffold/internal/boost/boostd"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/settings"
	"scaffold.dev/scaffold/internal/operate/setup"
	"scaffold.dev/scaffold/internal/trust"
)

// fillAgent is fill for an agent of boost: where others reach it, and by which interfaces connections pass, nobody else
// can know.
func (j *joining) fillAgent() error {
	switch {
	case len(j.uplinks) > 0 || len(j.tunnels) > 0 || j.service:
		return exit.Failf(exit.Usage, "it takes --door and --port", "--uplink, --tunnel and --service are of hosts and routers, and the token is for an agent of boost")
	case len(j.doors) == 0 || len(j.ports) == 0:
		return exit.Failf(exit.Usage, "as in --door 203.0.113.1 --port eth0 --port eth1", "the token is for an agent of boost: say with --door where other agents reach it, and with --port by which interfaces connections come and go")
	}
	for _, door := range j.doors {
		if _, err := netip.ParseAddrPort(door); err != nil {
			if _, err := netip.ParseAddr(door); err != nil {
				return exit.Failf(exit.Usage, "", "--door %.80q: expected an address, with or without a port, as in 203.0.113.1 or [2001:db8::1]:23731", door)
			}
		}
	}
	if j.state == "" {
		j.state = boostd.DefaultCredentials
	}
	if j.config == "" {
		j.config = setup.Agent.Config()
	}
	if j.install && j.config != setup.Agent.Config() {
		return exit.Failf(exit.Usage, "leave one of the two out", "--install and --config: the service reads %s", setup.Agent.Config())
	}
	if info, err := os.Stat(j.config); err == nil && !info.Mode().IsRegular() {
		return exit.Failf(exit.Usage, "name the file that the daemon is to read", "--config %s is no file", j.config)
	}
	return interfacesThere(j.ports)
}

// runs reports whether an agent is a service that runs here, with the file that is to be written.
func (j *joining) runs(ctx context.Context) bool {
	return j.role() == setup.Agent && j.config == setup.Agent.Config() && bySystemd() && systemctl(ctx, "is-active", "--quiet", setup.Agent.Unit()) == nil
}

// leavesAgent refuses to write another file for an agent that runs, before anything is done: it counts after a restart alone,
// for the agent's keeper has the one of its start, and a restart resets what is carried.
func (j *joining) leavesAgent(ctx context.Context) error {
	if j.restart || !j.runs(ctx) {
		return nil
	}
	var changes []string
	if have, err := os.ReadFile(j.config); err == nil {
		var text string
		if text, changes = j.next(have); text == string(have) {
			return nil
		}
	}
	return exit.Failf(exit.Refused, "drain it (scaffold boost agent drain "+j.name+"), wait until `scaffold boost session ls --agent "+j.name+"` is empty, and say --restart",
		"an agent runs here, and %s is to say something else than now: that counts after a restart, which resets the connections that it carries; nothing was changed%s", j.config, asLines(changes))
}

// next is what the daemon's file is to say in place of what it says. Of an agent's that is one of an agent with controllers only
// the lines change of which join says something else: how it shares a path, for one, somebody has written there.
func (j *joining) next(have []byte) (text string, changes []string) {
	if j.token.Role != trust.Agent {
		return j.text(), nil
	}
	var was struct{ Controllers []string }
	if yaml.Unmarshal(have, &was) != nil || len(was.Controllers) == 0 {
		return j.text(), nil
	}
	typed := []settings.Setting{{Key: "name", Value: scalar(j.name)}, {Key: "door", Value: scalar(j.doors[0])}, {Key: "ports", Value: list(j.ports)},
		{Key: "credentials", Value: scalar(j.state)}}
	if len(j.doors) > 1 { // else those that somebody has written there stay
		typed = append(typed, settings.Setting{Key: "paths", Value: list(j.doors[1:])})
	}
	if now := j.endpoints(); !sameSet(was.Controllers, now) { // their order is which of them has answered first, this time
		typed = append(typed, settings.Setting{Key: "controllers", Value: list(now)})
	}
	merged, changes, err := settings.Merge(j.config, have, typed)
	if err != nil { // it is written in some way that is not changed line by line
		return j.text(), nil
	}
	return string(merged), changes
}

func scalar(value string) yaml.Node {
	return yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: value}
}

func list(values []string) yaml.Node {
	n := yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, v := range values {
		item := scalar(v)
		n.Content = append(n.Content, &item)
	}
	return n
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// beginAgain is begin where the agent runs: what it carries goes on, unless it is to be restarted.
func (j *joining) beginAgain(say func(string), run func(...string) error) error {
	unit := setup.Agent.Unit()
	switch {
	case j.restart:
		say(unit + " is restarted: connections that it carries are reset")
		if err := run("restart"); err != nil {
			return err
		}
		say(unit + " runs")
	case j.redeemed: // which a worker reads when it begins
		if err := run("kill", "--kill-who=main", "--signal=USR2"); err != nil {
			return err
		}
		say(unit + " runs, and has another worker, with the new credentials: connections that it carries go on")
	default:
		say(unit + " runs already, and is left alone: nothing has changed")
	}
	return nil
}
