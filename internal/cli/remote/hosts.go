package remote

import (
	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/exit"

	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// HostDaemons are the daemons of the hosts that are meant. They are asked themselves about what is known nowhere else:
// flows, and guests.
type HostDaemons struct {
	Admin
	Host string // only this host of the lab; "": all of them
}

// Each calls do with the daemon of every host that is meant, and stops at the first error.
func (d *HostDaemons) Each(do func(client apiv1connect.LocalClient, node NodeSocket) error) error {
	nodes, err := d.Hosts(d.Host)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		http, base, err := api.Dial(node.Path)
		if err != nil {
			return exit.Fail(exit.Usage, "", err)
		}
		if err := do(apiv1connect.NewLocalClient(http, base), node); err != nil {
			return err
		}
	}
	return nil
}

// Local is the API of the one host that is meant.
func (d *HostDaemons) Local() (apiv1connect.LocalClient, NodeSocket, error) {
	nodes, err := d.Hosts(d.Host)
	if err != nil {
		return nil, NodeSocket{}, err
	}
	if len(nodes) > 1 {
		return nil, NodeSocket{}, exit.Failf(exit.Usage, "say which one with --host NAME", "the lab has %d hosts", len(nodes))
	}
	http, base, err := api.Dial(nodes[0].Path)
	if err != nil {
		return nil, NodeSocket{}, exit.Fail(exit.Usage, "", err)
	}
	return apiv1connect.NewLocalClient(http, base), nodes[0], nil
}
