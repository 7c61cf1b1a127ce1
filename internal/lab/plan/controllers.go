package plan

import (
	"net/netip"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/lab/file"
)

// ControllerPort is where the controller listens on the management network.
const ControllerPort = 23728

// Listens are the addresses of a controller: on the management network, and on the underlay.
func (p *Plan) Listens(n *Node) []string {
	list := []string{controllerURL(n)}
	for _, a := range n.Offers() {
		list = append(list, "http://"+netip.AddrPortFrom(a, ControllerPort).String())
	}
	return list
}

// controllerURL is where a controller listens on the management network.
func controllerURL(n *Node) string {
	return "http://" + netip.AddrPortFrom(n.Management, ControllerPort).String()
}

// ControllerURLs are those of all controllers, joined by commas.
func (p *Plan) ControllerURLs() string {
	var urls []string
	for _, n := range p.File.Of(file.Controller) {
		urls = append(urls, controllerURL(p.Node(n.Name)))
	}
	return strings.Join(urls, ",")
}

// peerPort is where the controllers' parts of the state reach each other, where there are several.
const peerPort = 23729

// ClusterMembers are the controllers where several keep the state together, each as NAME=URL; none where there is one.
func (p *Plan) ClusterMembers() (members []string) {
	all := p.File.Of(file.Controller)
	if len(all) == 1 {
		return nil
	}
	for _, n := range all {
		members = append(members, n.Name+"=http://"+netip.AddrPortFrom(p.Node(n.Name).Management, peerPort).String())
	}
	return members
}

// openflowPort is where the controller listens for switches, on the management network.
const openflowPort = 6653

// OpenFlowTarget is where a controller listens for switches.
func OpenFlowTarget(n *Node) string {
	return "tcp:" + netip.AddrPortFrom(n.Management, openflowPort).String()
}

// OpenFlowTargets are those of all controllers: the one that leads answers.
func (p *Plan) OpenFlowTargets() (targets []string) {
	for _, n := range p.File.Of(file.Controller) {
		targets = append(targets, OpenFlowTarget(p.Node(n.Name)))
	}
	return targets
}

// ControllerFor is where hosts on the underlay find the controller: by IPv4 if it may be, which all of them have.
func (p *Plan) ControllerFor(host *Node) string {
	ctl := p.Node(p.File.Of(file.Controller)[0].Name)
	four := slices.ContainsFunc(host.Offers(), netip.Addr.Is4)
	for _, a := range ctl.Offers() {
		if a.Is4() == four {
			return "http://" + netip.AddrPortFrom(a, ControllerPort).String()
		}
	}
	return p.ControllerURLs()
}
