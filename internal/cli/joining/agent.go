package joining

import (
	"net/netip"
	"os"

	"scaffold.dev/scaffold/internal/boost/boostd"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/operate/setup"
)

// fillAgent is fill for an agent of boost: where others reach it, and by which interfaces connections pass, nobody else
// can know.
func (j *joining) fillAgent() error {
	switch {
	case len(j.uplinks) > 0 || len(j.tunnels) > 0 || j.service:
		return exit.Failf(exit.Usage, "it takes --door and --port", "--uplink, --tunnel and --service are of hosts and routers, and the token is for an agent of boost")
	case j.door == "" || len(j.ports) == 0:
		return exit.Failf(exit.Usage, "as in --door 203.0.113.1 --port eth0 --port eth1", "the token is for an agent of boost: say with --door where other agents reach it, and with --port by which interfaces connections come and go")
	}
	if _, err := netip.ParseAddrPort(j.door); err != nil {
		if _, err := netip.ParseAddr(j.door); err != nil {
			return exit.Failf(exit.Usage, "", "--door %.80q: expected an address, with or without a port, as in 203.0.113.1 or [2001:db8::1]:23731", j.door)
		}
	}
	if j.state == "" {
		j.state = boostd.DefaultCredentials
	}
	if j.config == "" {
		j.config = setup.Agent.Config()
	}
	if j.install && j.config != setup.Agent.Config() {
		return exit.Failf(exit.Usage, "leave one of the two out", "--install and --config: the service reads %s", setup.Agent.Config())
	}
	if info, err := os.Stat(j.config); err == nil && !info.Mode().IsRegular() {
		return exit.Failf(exit.Usage, "name the file that the daemon is to read", "--config %s is no file", j.config)
	}
	return interfacesThere(j.ports)
}
