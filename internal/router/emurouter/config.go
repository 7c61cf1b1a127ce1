package emurouter

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/wire"
)

// A Config is what a router is.
type Config struct {
	Name        string     // in the network
	Controller  string     // endpoints, joined by commas; one of them leads
	Netns       string     // path of the network namespace from which the controller is reached; "": this process's own
	Credentials string     // directory of what makes it a member of a network with keys; "": nothing
	Service     bool       // also resolves first packets
	Block       uint32     // number of the block of locators to ask for; 0: any
	LinkLocal   netip.Addr // its address on all ports
	Ports       []Port     // by number
	Log         *slog.Logger
}

// A Port is one of the router's.
type Port struct {
	Name string
	MTU  int // bytes from the IPv6 header on
}

// usualMTU is that of a port which says nothing.
const usualMTU = 1500

// keys are the parameters that Parse knows.
const keys = "controller, netns, credentials, service, block, link-local, ports"

// Parse reads a configuration from parameters: service true or false, ports as "NAME:MTU,NAME:MTU,...".
func Parse(name string, parameters map[string]string) (Config, error) {
	c := Config{Name: name}
	for key, value := range parameters {
		var err error
		switch key {
		case "controller":
			c.Controller = value
		case "netns":
			c.Netns = value
		case "credentials":
			c.Credentials = value
		case "service":
			c.Service, err = strconv.ParseBool(value)
		case "block":
			var n uint64
			n, err = strconv.ParseUint(value, 10, 8)
			c.Block = uint32(n)
		case "link-local":
			c.LinkLocal, err = netip.ParseAddr(value)
		case "ports":
			c.Ports, err = parsePorts(value)
		default:
			return c, fmt.Errorf("unknown parameter %q; expected one of %s", key, keys)
		}
		if err != nil {
			return c, fmt.Errorf("%s %q: %w", key, value, err)
		}
	}
	return c, c.check()
}

func parsePorts(s string) (ports []Port, err error) {
	for one := range strings.SplitSeq(s, ",") {
		p := Port{MTU: usualMTU}
		name, mtu, ok := strings.Cut(one, ":")
		if p.Name = name; ok {
			if p.MTU, err = strconv.Atoi(mtu); err != nil {
				return nil, fmt.Errorf("port %s: expected an MTU in bytes, found %q", name, mtu)
			}
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// leastMTU is what IPv6 demands of a link.
const leastMTU = 1280

func (c *Config) check() error {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Name == "" || len(c.Name) > wire.MaxName {
		return fmt.Errorf("router name %.40q: want 1 to %d characters", c.Name, wire.MaxName)
	}
	if !c.LinkLocal.Is6() || !c.LinkLocal.IsLinkLocalUnicast() {
		return fmt.Errorf("link-local %v: want an address such as fe80::1", c.LinkLocal)
	}
	for endpoint := range strings.SplitSeq(c.Controller, ",") {
		if _, err := api.ParseEndpoint(endpoint); err != nil {
			return fmt.Errorf("controller: %w", err)
		}
	}
	seen := map[string]bool{}
	for _, p := range c.Ports {
		switch {
		case p.Name == "" || len(p.Name) > wire.MaxName:
			return fmt.Errorf("port name %.40q: want 1 to %d characters", p.Name, wire.MaxName)
		case seen[p.Name]:
			return fmt.Errorf("port %s is there twice", p.Name)
		case p.MTU < leastMTU || p.MTU > 65535:
			return fmt.Errorf("port %s: an MTU of %d bytes; want %d to 65535", p.Name, p.MTU, leastMTU)
		}
		seen[p.Name] = true
	}
	return nil
}
