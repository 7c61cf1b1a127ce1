package hostd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/bpf/bpffs"
	corenames "scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/host/checks"
	"scaffold.dev/scaffold/internal/host/registry"
	"scaffold.dev/scaffold/internal/host/tunnels"
	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/wire"
)

// Config is what the daemon is told at start. Its network namespace is the one it runs in.
type Config struct {
	Name        string   // of the host in the network
	Lab         string   // whose host this is; "": no lab's
	Uplinks     []string // interfaces, the preferred one first; none: AutoUplink
	Controllers []string // endpoints, of which one leads; none: through the first-hop router
	Socket      string   // path of the API's Unix socket
	Metrics     string   // host:port that serves metrics and health besides; "": none
	StateDir    string   // key, names and the last attachment
	BPFFS       string   // where pins are
	Keep        bool     // leave the data path in place at the end, for an upgrade
	ResolvConf  string   // whose servers answer for other domains; empty: nobody does
	DNS         []string // addresses to answer DNS on
	Permits     string   // directory of permits, and of services' keys; empty: none but those that were presented
	WireGuard   []string // program that keeps WireGuard for tunnels; nil: this one
	Journal     string   // file for each decision about a flow that moves or fails over, a line of JSON each; empty: none

	ExecChecks []string // commands that ready checks may run: COMMAND, or NAME=COMMAND
	Serve      []string // who may serve: SERVICE=USER,@GROUP,..., *= for all others; empty: *=system

	KeyFor time.Duration // how long a key is kept in a network with keys; 0: for good

	allowed checks.Allowed             // of ExecChecks
	servers registry.Servers           // of Serve
	tunnels map[string][]underlay.Kind // of uplinks that are tunnels, by interface
	auto    bool                       // the tunnel is for while no cable leads to a router
	beside  bool                       // a router runs in this network namespace, and is the host's
}

// Defaults for what a Config leaves empty.
const (
	DefaultSocket   = "/run/scaffold/hostd.sock"
	DefaultStateDir = "/var/lib/scaffold/hostd"
)

// DefaultDNS is the loopback of the host, both families.
var DefaultDNS = []string{"[::1]:53", "127.0.0.1:53"}

// Check fills in defaults and says what is wrong.
func (c *Config) Check() error {
	orElse := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	orElse(&c.Socket, DefaultSocket)
	orElse(&c.StateDir, DefaultStateDir)
	orElse(&c.BPFFS, bpffs.Default)
	c.Socket = strings.TrimPrefix(c.Socket, "unix:")
	if c.DNS == nil {
		c.DNS = DefaultDNS
	}
	if err := corenames.CheckMember(c.Name); err != nil {
		return fmt.Errorf("host: %w", err)
	}
	if len(c.Name) > wire.MaxName {
		return fmt.Errorf("host name %.40q: want 1 to %d characters", c.Name, wire.MaxName)
	}
	if len(c.Uplinks) == 0 {
		c.Uplinks = []string{AutoUplink}
	}
	if len(c.Uplinks) > 1 && slices.Contains(c.Uplinks, AutoUplink) {
		return fmt.Errorf("uplink auto beside others: want it alone, or the uplinks by name")
	}
	if err := c.readTunnels(); err != nil {
		return err
	}
	list, err := checks.ParseAllowed(c.ExecChecks)
	if err != nil {
		return err
	}
	c.allowed = list
	if c.servers, err = registry.ParseServers(c.Serve); err != nil {
		return err
	}
	for _, endpoint := range c.Controllers {
		if _, err := api.ParseEndpoint(endpoint); err != nil {
			return fmt.Errorf("controller: %w", err)
		}
	}
	if _, err := api.ParseEndpoint(c.Metrics); c.Metrics != "" && err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}

// readTunnels gives each uplink that is to be a tunnel the name of its interface.
func (c *Config) readTunnels() error {
	for i, text := range c.Uplinks {
		kinds, ok, err := underlay.ParseUplink(text)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if len(c.Controllers) == 0 {
			return fmt.Errorf("uplink %s: name the controller as well (--controller http://HOST:PORT): before there is a tunnel no router leads to it", text)
		}
		if c.tunnels == nil {
			c.tunnels = map[string][]underlay.Kind{}
		}
		c.Uplinks[i] = tunnels.NameOf(len(c.tunnels))
		c.tunnels[c.Uplinks[i]] = kinds
	}
	if len(c.tunnels) > maxTunnels {
		return fmt.Errorf("%d tunnels: a host has at most %d", len(c.tunnels), maxTunnels)
	}
	return nil
}

// maxTunnels is what the controller allows a host.
const maxTunnels = 4
