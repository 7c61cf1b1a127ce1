package setup

import (
	"fmt"
	"strings"
)

// The groups of the sockets: of hosts' and routers' daemons, and of the controller. Programs of a host are in the first
// one; on a machine that is a controller, too, they do not rule the network by it.
const (
	group      = "scaffold"
	adminGroup = "scaffold-admin"
)

// tellRulers names those who ruled the network by the group that was the controller's before, where this installation
// is an upgrade of such a one.
func (p *Plan) tellRulers(m *Machine) {
	former, err := m.read("/etc/tmpfiles.d/scaffold.conf")
	if p.Role != Controller || err != nil || strings.Contains(string(former), adminGroup) {
		return
	}
	if who := m.members(group); len(who) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("the controller's socket is for root and the group %s from now on; in the group %s are %s, who could rule the network by it: whoever still is to, `adduser NAME %[1]s`, and `deluser NAME %[2]s` whoever needs no host's daemon", adminGroup, group, strings.Join(who, ", ")))
	}
}

// members are the users in a group of the machine.
func (m *Machine) members(name string) []string {
	text, _ := m.read("/etc/group") // none: a machine without users
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 4 && f[0] == name && f[3] != "" {
			return strings.Split(f[3], ",")
		}
	}
	return nil
}
