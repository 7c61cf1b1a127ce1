package install

import (
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/cli/daemons"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/settings"
	"scaffold.dev/scaffold/internal/host/hostd"
	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/operate/setup"
)

// BesideFits refuses the second of a router and a host on one machine where the host's uplinks are said by name: what is
// a router joins its network by that router alone. Said is in the host's file, or typed.
func BesideFits(m *setup.Machine, role setup.Role, said []string) error {
	other := map[setup.Role]setup.Role{setup.Router: setup.Host, setup.Host: setup.Router}[role]
	if other == "" || !m.Exists(other.Config()) {
		return nil
	}
	by := slices.DeleteFunc(slices.Clone(said), func(u string) bool { return u == hostd.AutoUplink || u == underlay.OwnUplink })
	if len(by) == 0 {
		return nil
	}
	next := "leave --uplink out: it finds the router of this machine"
	if role == setup.Router {
		next = "scaffold install host --uplink auto  # then again: the host finds the router of this machine"
	}
	return exit.Failf(exit.Refused, next, "a machine that is a router joins as a host by that router alone, and its host is to have the uplink %s", strings.Join(by, ", "))
}

// HostUplinks are those that the text of a host's file says.
func HostUplinks(text []byte) []string {
	file, err := settings.Parse(setup.Host.Config(), text)
	if err != nil {
		return nil // who reads it tells
	}
	daemon := daemons.Hostd()
	if file.Apply(daemon.Flags()) != nil {
		return nil
	}
	uplinks, _ := daemon.Flags().GetStringSlice("uplink")
	return uplinks
}

// beside is BesideFits for what is to be installed.
func (in *installation) beside(m *setup.Machine, merged []byte) error {
	if in.options.Role != setup.Host {
		merged, _ = m.Read(setup.Host.Config())
	}
	return BesideFits(m, in.options.Role, HostUplinks(merged))
}
