package engine

import (
	"fmt"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
)

// addScaffold adds what the program of one of Scaffold's routers inside the engine is told. It reaches the controller
// from the controller's own namespace: it has none.
func addScaffold(p *plan.Plan, d state.Dir, n *plan.Node, parameters map[string]string) {
	var ports []string
	for _, port := range n.Ports {
		ports = append(ports, fmt.Sprintf("%s:%d", port.Dev, port.Link.MTU))
	}
	parameters["controller"] = p.ControllerURLs()
	parameters["netns"] = plan.NetnsPath(p.Node(p.File.Of(file.Controller)[0].Name).Netns)
	if p.File.Network.Trust == "keys" {
		parameters["credentials"] = d.Credentials(n.Name)
	}
	parameters["service"] = strconv.FormatBool(n.Service)
	parameters["block"] = strconv.Itoa(n.Block)
	parameters["link-local"] = n.LinkLocal.String()
	parameters["ports"] = strings.Join(ports, ",")
}
