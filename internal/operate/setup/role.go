package setup

import (
	"fmt"
	"strings"
)

// A Role is what a machine is in a network. A machine may have several.
type Role string

// The roles.
const (
	Controller Role = "controller"
	Router     Role = "router"
	Host       Role = "host"
	Gateway    Role = "gateway"
	Agent      Role = "agent" // of boost
)

// Roles are all of them, in the order in which they start.
var Roles = []Role{Controller, Router, Host, Gateway, Agent}

// ParseRole reads a role.
func ParseRole(text string) (Role, error) {
	for _, r := range Roles {
		if string(r) == text {
			return r, nil
		}
	}
	return "", fmt.Errorf("%q is no role: want controller, router, host, gateway or agent", text)
}

// Daemon is the command that runs for the role.
func (r Role) Daemon() string {
	return map[Role]string{Controller: "controld", Router: "routerd", Host: "hostd", Gateway: "gateway", Agent: "boostd"}[r]
}

// Unit is the role's systemd unit.
func (r Role) Unit() string { return "scaffold-" + r.Daemon() + ".service" }

// Config is the daemon's configuration file.
func (r Role) Config() string { return "/etc/scaffold/" + r.Daemon() + ".yaml" }

// Socket is where the daemon answers once it runs; an agent answers nowhere, its controller does.
func (r Role) Socket() string {
	if r == Controller {
		return "/run/scaffold/controld/api.sock"
	}
	return "/run/scaffold/" + r.Daemon() + ".sock"
}

// state is what the daemon keeps between its runs.
func (r Role) state() string { return "/var/lib/scaffold/" + r.Daemon() }

// Start is the command line that runs the daemon where no service manager does.
func (r Role) Start(binary string, flags []string) string {
	return strings.Join(append([]string{binary, r.Daemon(), "--config", r.Config()}, flags...), " ")
}
