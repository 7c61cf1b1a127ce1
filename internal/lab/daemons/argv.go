package daemons

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/lab/wires"
)

// Argv is how the daemon of a controller, a router or a host is started, by which binary.
func Argv(p *plan.Plan, d state.Dir, binary string, n *plan.Node) []string {
	argv := []string{binary, n.Daemon(), "--name", n.Name, "--socket", d.Socket(n)}
	switch n.Kind {
	case file.Controller:
		space := p.File.Network.Space
		argv = append(argv, "--trust", cmp.Or(p.File.Network.Trust, "open")) // nobody else reaches its namespaces
		argv = append(argv, openflow(p, n)...)
		if members := p.ClusterMembers(); members != nil {
			argv = append(argv, "--cluster", strings.Join(members, ","))
			if p.File.Network.Trust == "keys" {
				argv = append(argv, "--peer-clear") // nobody but controllers, routers and hosts of the lab is on its management network
			}
		}
		return append(argv,
			"--listen", strings.Join(p.Listens(n), ","), "--data", d.Program(n.Name, "data"),
			"--network", strings.ReplaceAll(p.File.Name, "_", "-"), "--domain", p.File.Network.Domain,
			"--services", space.Services.String(), "--as", space.AS.String(), "--identities", space.Identities.String())
	case file.Router:
		return append(argv, router(p, d, n)...)
	}
	argv = append(argv, "--bpffs", d.BPF(), "--state", d.Credentials(n.Name))
	for _, port := range n.Data() {
		argv = append(argv, "--uplink", port.Dev)
	}
	if p.File.Tunneled(n.Node) {
		argv = append(argv, "--uplink", cmp.Or(n.Uplink, "auto"), "--controller", p.ControllerFor(n))
	}
	for _, s := range p.File.Services {
		if command, ok := strings.CutPrefix(s.Ready, "exec:"); ok {
			argv = append(argv, "--exec-check", command) // the file speaks for the lab's hosts as well
		}
	}
	if p.File.Network.Journal {
		argv = append(argv, "--journal", d.Journal(n.Name))
	}
	return argv
}

func router(p *plan.Plan, d state.Dir, n *plan.Node) []string {
	argv := []string{"--controller", p.ControllerURLs(), "--bpffs", d.BPF(), "--block", strconv.Itoa(n.Block), "--mgmt", wires.ManagementDev}
	if p.File.Network.Trust == "keys" {
		argv = append(argv, "--credentials", d.Credentials(n.Name))
	}
	if n.Service {
		argv = append(argv, "--service")
	}
	for _, port := range n.Data() {
		argv = append(argv, "--port", port.Dev)
	}
	if n.Tunnels {
		for _, a := range n.Offers() {
			argv = append(argv, "--tunnel", a.String())
		}
	}
	for _, peer := range n.Peers {
		argv = append(argv, "--link", fmt.Sprintf("peer=%s,port=%s,via=%s", peer.Name, peer.Dev, peer.Via))
	}
	return argv
}
