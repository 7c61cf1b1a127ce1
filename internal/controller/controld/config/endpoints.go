package config

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"

	"scaffold.dev/scaffold/internal/api"
)

// Own are the endpoints that do not depend on what is stored.
func (c *Config) Own() []string {
	own := c.Listen
	if c.ListenByTrust {
		own = nil
	}
	if c.Socket != "" {
		own = append([]string{unixEndpoint(c.Socket)}, own...)
	}
	return own
}

// Settle decides by the store whether the network has keys, and says where else to listen as that makes it safe. Nobody is
// answered before.
func (c *Config) Settle(ctx context.Context, s Stored, log *slog.Logger) ([]string, error) {
	have, err := c.choose(ctx, s, log)
	if err != nil {
		return nil, err
	}
	if err := c.refuseClear(have, s.Kept()); err != nil {
		return nil, err
	}
	if c.Decided != nil {
		if err := c.Decided(c.Trust != TrustOpen); err != nil {
			return nil, err
		}
	}
	at, err := c.listensAt(wasOpenBefore(have))
	if err != nil || !c.ListenByTrust {
		return nil, err
	}
	c.Listen = at
	return at, nil
}

// advertise finds out where others reach this controller, unless it was told.
func (c *Config) advertise() error {
	if len(c.Advertise) > 0 {
		return nil
	}
	listen := c.Listen
	if c.ListenByTrust {
		listen = []string{DefaultListen}
	}
	for _, endpoint := range listen {
		e, err := api.ParseEndpoint(endpoint)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		if e.Network == "tcp" {
			if e.Address, err = c.concrete(e.Address); err != nil {
				return err
			}
		}
		c.Advertise = append(c.Advertise, e.String())
	}
	if len(c.Advertise) == 0 {
		c.Advertise = []string{unixEndpoint(c.Socket)}
	}
	return nil
}

// concrete puts the host under which other members reach this one in the place of "any address".
func (c *Config) concrete(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		return address, nil
	}
	if c.Cluster != nil {
		if u, err := url.Parse(c.Cluster.Own()); err == nil {
			return net.JoinHostPort(u.Hostname(), port), nil
		}
	}
	return "", fmt.Errorf("listen %q says nothing of where daemons and the other controllers reach this one: give --advertise http://host:%s", address, port)
}

// unixEndpoint takes a path, or an endpoint that says so already.
func unixEndpoint(path string) string {
	if e, err := api.ParseEndpoint(path); err == nil && e.Network == "unix" {
		return path
	}
	return "unix:" + path
}

// Reached are the addresses by which others may reach endpoints of this machine; one on all addresses is at each.
func Reached(endpoints []string) []string { return spread(endpoints, machineAddresses()) }

// spread puts a machine's addresses in the place of "any address".
func spread(endpoints []string, machine []netip.Addr) (all []string) {
	for _, text := range endpoints {
		e, err := api.ParseEndpoint(text)
		if err != nil || e.Network != "tcp" {
			continue
		}
		host, port, err := net.SplitHostPort(e.Address)
		if err != nil {
			continue
		}
		ip, err := netip.ParseAddr(host)
		if host != "" && (err != nil || !ip.IsUnspecified()) {
			all = append(all, e.Address)
			continue
		}
		for _, a := range machine {
			if host != "" && ip.Is4() && !a.Is4() {
				continue
			}
			all = append(all, net.JoinHostPort(a.String(), port))
		}
	}
	return all
}

// machineAddresses are those of this machine by which others may reach it, IPv4 first: more networks carry it.
func machineAddresses() (all []netip.Addr) {
	links, _ := net.Interfaces() // none: no addresses
	for _, link := range links {
		if link.Flags&net.FlagUp == 0 || link.Flags&net.FlagLoopback != 0 {
			continue
		}
		list, _ := link.Addrs() // it has gone
		for _, a := range list {
			p, err := netip.ParsePrefix(a.String())
			if addr := p.Addr().Unmap(); err == nil && addr.IsGlobalUnicast() {
				all = append(all, addr)
			}
		}
	}
	four := slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return !a.Is4() })
	return append(four, slices.DeleteFunc(all, netip.Addr.Is4)...)
}
