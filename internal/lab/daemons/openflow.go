package daemons

import (
	"fmt"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
)

// openflow is what a controller is told about the lab's switches.
func openflow(p *plan.Plan, controller *plan.Node) (argv []string) {
	for _, n := range p.Nodes {
		if n.Kind != file.Switch {
			continue
		}
		if argv == nil {
			argv = []string{"--openflow", plan.OpenFlowTarget(controller)}
			if p.File.Network.Trust == "keys" {
				argv = append(argv, "--openflow-clear") // nobody but switches is in these namespaces
			}
		}
		argv = append(argv, "--switch", fmt.Sprintf("%s=%016x,service=%v,block=%d", n.Name, n.Datapath, n.Service, n.Block)+narrow(n))
		for _, peer := range n.Peers {
			argv = append(argv, "--switch-link", fmt.Sprintf("switch=%s,peer=%s,port=%s,via=%s", n.Name, peer.Name, peer.Dev, peer.Via))
		}
	}
	return argv
}

// narrow are the links of a switch that take less than hosts send: OpenFlow does not tell.
func narrow(n *plan.Node) (text string) {
	for _, p := range n.Ports {
		if p.Under == nil && p.Link.MTU < file.DefaultMTU {
			text += fmt.Sprintf(",mtu=%s:%d", p.Dev, p.Link.MTU)
		}
	}
	return text
}
