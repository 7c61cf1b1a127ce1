package joining

import (
	"context"
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
	j.at = nil
	for _, text := range j.doors {
		door, err := boostd.ParseDoor(text)
		if err != nil {
			return exit.Failf(exit.Usage, "", "--door %.80q: %v", text, err)
		}
		j.at = append(j.at, door)
	}
	if err := boostd.ApartDoors(j.at); err != nil {
		return exit.Failf(exit.Usage, "", "--door: %v", err)
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

// leavesAgent looks before anything is done what the agent's file is to say, and refuses another one for an agent that runs: it
// counts after a restart alone, for the agent's keeper has the one of its start, and a restart resets what is carried.
func (j *joining) leavesAgent(ctx context.Context) error {
	if j.role() != setup.Agent {
		return nil
	}
	var changes []string
	have, err := os.ReadFile(j.config)
	if err == nil {
		var text string
		if text, changes, err = j.next(have); err != nil || text == string(have) {
			return err
		}
	}
	if j.restart || !j.runs(ctx) {
		return nil
	}
	return exit.Failf(exit.Refused, "drain it (scaffold boost agent drain "+j.name+"), wait until `scaffold boost session ls --agent "+j.name+"` is empty, and say --restart",
		"an agent runs here, and %s is to say something else than now: that counts after a restart, which resets the connections that it carries; nothing was changed%s", j.config, asLines(changes))
}

// next is what the daemon's file is to say in place of what it says. Of an agent's that is one of an agent with controllers only
// the lines change of which join says something else: how it shares a path, for one, somebody has written there.
func (j *joining) next(have []byte) (text string, changes []string, err error) {
	if j.token.Role != trust.Agent {
		return j.text(), nil, nil
	}
	was, err := boostd.Parse(j.config, have)
	if err != nil || len(was.Controllers) == 0 { // no agent of a network would take it
		return j.text(), nil, nil
	}
	typed := j.differs(&was)
	if len(typed) == 0 {
		return string(have), nil, nil
	}
	merged, changes, err := settings.Merge(j.config, have, typed)
	if err == nil {
		_, err = boostd.Parse(j.config, merged)
	}
	if err != nil { // written in a way that is not changed line by line, or what is there does not go with what is new
		return "", nil, exit.Fail(exit.Refused, "change the file by hand, or move it away: join writes another one then; nothing was changed", err)
	}
	return string(merged), changes, nil
}

// differs is what join says otherwise than the file. Further addresses that nobody has named stay, and so do the limits of those
// that are named again.
func (j *joining) differs(was *boostd.Settings) (typed []settings.Setting) {
	say := func(key string, differs bool, value yaml.Node) {
		if differs {
			typed = append(typed, settings.Setting{Key: key, Value: value})
		}
	}
	say("name", was.Name != j.name, scalar(j.name))
	say("door", was.Door != j.at[0], scalar(j.doors[0]))
	say("paths", len(j.at) > 1 && !slices.Equal(was.Addresses()[1:], j.at[1:]), list(j.doors[1:]))
	say("ports", !slices.Equal(was.Ports, j.ports), list(j.ports))
	say("credentials", was.Credentials != j.state, scalar(j.state))
	now := j.endpoints() // their order is which of them has answered first, this time
	say("controllers", !sameSet(was.Controllers, now), list(now))
	return typed
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
