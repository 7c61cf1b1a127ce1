package hostd

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/bpf/bpffs"
	"scaffold.dev/scaffold/wire"
)

// Config is what the daemon is told at start. Its network namespace is the one it runs in.
type Config struct {
	Name        string   // of the host in the network
	Uplinks     []string // interfaces, the preferred one first
	Controllers []string // endpoints, of which one leads; none: through the first-hop router
	Socket      string   // path of the API's Unix socket
	Metrics     string   // host:port that serves metrics and health besides; "": none
	StateDir    string   // key, names and the last attachment
	BPFFS       string   // where pins are
	Keep        bool     // leave the data path in place at the end, for an upgrade
	ResolvConf  string   // whose servers answer for other domains; empty: nobody does
	DNS         []string // addresses to answer DNS on
	Permits     string   // directory of permits, and of services' keys; empty: none but those that were presented
	Journal     string   // file for each decision about a flow that moves or fails over, a line of JSON each; empty: none
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
	if c.Name == "" || len(c.Name) > wire.MaxName || !utf8.ValidString(c.Name) {
		return fmt.Errorf("host name %.40q: want 1 to %d characters", c.Name, wire.MaxName)
	}
	if len(c.Uplinks) == 0 {
		return fmt.Errorf("no uplink: name at least one interface that leads to a router")
	}
	for _, endpoint := range c.Controllers {
		if _, err := api.ParseEndpoint(endpoint); err != nil {
			return fmt.Errorf("controller: %w", err)
		}
	}
	return nil
}
