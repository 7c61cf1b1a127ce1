package routerd

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/bpf/bpffs"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/wire"
)

// Config is what the daemon is told at start. Its network namespace is the one it runs in.
type Config struct {
	Name        string           // of the router in the network
	Lab         string           // whose router this is; "": no lab's
	Controllers []string         // endpoints; one of them leads
	Service     bool             // also resolves first packets
	Block       uint32           // number of the block of locators to ask for; 0: any
	Ports       []string         // interfaces; none: all Ethernet-like ones but Management
	Management  string           // interface that leads to the controller and is no port
	Links       []Link           // neighbours behind routers that know nothing of Scaffold
	Tunnels     []underlay.Offer // to hosts without a cable
	WireGuard   []string         // program that keeps WireGuard, docs/operate.md; nil: this one
	Credentials string           // directory of what makes it a member of a network with keys
	KeyFor      time.Duration    // how long a key is kept in a network with keys; 0: for good
	Socket      string           // path of the status API's Unix socket
	Metrics     string           // host:port that serves metrics and health besides; "": none
	BPFFS       string           // where pins are
	Keep        bool             // leave everything in the kernel at the end, for an upgrade
	NoTCX       bool             // attach by clsact filters, as kernels before 6.6 need it
	Profiles    bool             // serve /debug/pprof on the socket
}

// A Link leads over a plain IPv6 router to the router Peer.
type Link struct {
	Peer string
	Port string
	Via  netip.Addr // the plain router's address on the port
}

// DefaultSocket is where the status API is when nobody says otherwise.
const DefaultSocket = "/run/scaffold/routerd.sock"

// DefaultCredentials is where `scaffold join` puts a router's.
const DefaultCredentials = "/var/lib/scaffold/routerd"

// ParseLink reads "peer=NAME,port=INTERFACE,via=ADDRESS".
func ParseLink(s string) (Link, error) {
	var l Link
	for part := range strings.SplitSeq(s, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "peer":
			l.Peer = value
		case "port":
			l.Port = value
		case "via":
			a, err := netip.ParseAddr(value)
			if err != nil || !a.Is6() || a.Is4In6() {
				return l, fmt.Errorf("link %q: via %q is no IPv6 address", s, value)
			}
			l.Via = a.WithZone("")
		default:
			return l, fmt.Errorf("link %q: %q is none of peer, port, via", s, key)
		}
	}
	if l.Peer == "" || l.Port == "" || !l.Via.IsValid() {
		return l, fmt.Errorf("link %q: want peer=NAME,port=INTERFACE,via=ADDRESS", s)
	}
	return l, nil
}

// Check fills in defaults and says what is wrong.
func (c *Config) Check() error {
	if c.Socket == "" {
		c.Socket = DefaultSocket
	}
	if c.Credentials == "" {
		c.Credentials = DefaultCredentials
	}
	if c.BPFFS == "" {
		c.BPFFS = bpffs.Default
	}
	c.Socket = strings.TrimPrefix(c.Socket, "unix:")
	if err := names.CheckMember(c.Name); err != nil {
		return fmt.Errorf("router: %w", err)
	}
	if len(c.Name) > wire.MaxName {
		return fmt.Errorf("router name %.40q: want 1 to %d characters", c.Name, wire.MaxName)
	}
	if c.Block > 255 {
		return fmt.Errorf("block %d: want 1 to 255, or 0 for any", c.Block)
	}
	if len(c.Controllers) == 0 {
		return fmt.Errorf("no controller: name at least one endpoint")
	}
	for _, endpoint := range c.Controllers {
		if _, err := api.ParseEndpoint(endpoint); err != nil {
			return fmt.Errorf("controller: %w", err)
		}
	}
	if _, err := api.ParseEndpointAndPort(c.Metrics); c.Metrics != "" && err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	if err := underlay.CheckOffers(c.Tunnels); err != nil {
		return err
	}
	for _, l := range c.Links {
		if len(l.Peer) > wire.MaxName {
			return fmt.Errorf("link to %.20q..: a name has at most %d characters", l.Peer, wire.MaxName)
		}
	}
	return nil
}
