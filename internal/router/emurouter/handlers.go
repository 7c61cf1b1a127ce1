package emurouter

import (
	"encoding/json"
	"fmt"
	"strings"

	"scaffold.dev/scaffold/emu"
)

// Handlers implements emu.Handled.
func (x *Router) Handlers(*emu.Router) map[string]emu.Handler {
	return map[string]emu.Handler{
		"locator": {Get: x.locator, Doc: "the router's place in the network, empty before it has joined"},
		"routes":  {Get: x.routes, Doc: "prefixes and the ports that they lead to"},
		"fates":   {Get: x.fates, Doc: "what became of packets that were not simply forwarded, as JSON"},
		"rules":   {Get: x.rules, Doc: "services, instances and probed hosts, and packets forwarded"},
	}
}

func (x *Router) locator() (string, error) {
	if x.path.own == 0 {
		return "", nil
	}
	return x.path.own.String(), nil
}

func (x *Router) routes() (string, error) {
	var b strings.Builder
	for prefix, hop := range x.path.ways.All() {
		fmt.Fprintln(&b, prefix, x.cfg.Ports[hop-firstPort].Name)
	}
	return b.String(), nil
}

func (x *Router) fates() (string, error) {
	text, err := json.Marshal(x.path.counts())
	return string(text), err
}

func (x *Router) rules() (string, error) {
	services, instances := x.path.answers.Sizes()
	return fmt.Sprintf("services %d\ninstances %d\nprobed %d\nforwarded %d\nunheard %d", services, instances, x.path.probes.Len(),
		x.path.forwarded, x.path.unheard), nil
}
