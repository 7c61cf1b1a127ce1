package lab

import (
	"fmt"
	"strconv"
	"strings"
)

// addScaffold adds what the program of one of Scaffold's routers inside the engine is told. It reaches the controller
// from the controller's own namespace: it has none.
func (l *Lab) addScaffold(n *PlanNode, parameters map[string]string) {
	var ports []string
	for _, p := range n.Ports {
		ports = append(ports, fmt.Sprintf("%s:%d", p.Dev, p.Link.MTU))
	}
	parameters["controller"] = l.controllerURLs()
	parameters["netns"] = netnsPath(l.plan.Node(l.File.of(Controller)[0].Name).Netns)
	if l.File.Network.Trust == "keys" {
		parameters["credentials"] = l.credentialsDir(n)
	}
	parameters["service"] = strconv.FormatBool(n.Service)
	parameters["block"] = strconv.Itoa(n.Block)
	parameters["link-local"] = n.LinkLocal.String()
	parameters["ports"] = strings.Join(ports, ",")
}
