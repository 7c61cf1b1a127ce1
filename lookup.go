package scaffold

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// Lookup returns the address of a service, the one that programs connect to and listen on.
func (h *Host) Lookup(ctx context.Context, service string) (netip.Addr, error) {
	d, err := h.dial()
	if err != nil {
		return netip.Addr{}, err
	}
	defer d.Close()
	// The daemon knows names while the controller is away, and learns what the service's flows are to be like.
	if res, err := d.local.LookUp(ctx, connect.NewRequest(&apiv1.LookUpRequest{Name: service})); err == nil {
		return netip.ParseAddr(res.Msg.Address)
	}
	res, err := d.admin.GetService(ctx, connect.NewRequest(&apiv1.GetServiceRequest{Name: service}))
	if connect.CodeOf(err) == connect.CodeNotFound {
		return netip.Addr{}, fmt.Errorf("%q: %w", service, ErrUnknownService)
	}
	if err != nil {
		return netip.Addr{}, d.explain("names", fmt.Errorf("look %q up: %w", service, err))
	}
	return netip.ParseAddr(res.Msg.Address)
}

// resolve turns "web:80" into an address that package net takes, and names the service.
func (h *Host) resolve(ctx context.Context, network, address string) (at, service string, err error) {
	if network != "tcp" && network != "udp" {
		return "", "", net.UnknownNetworkError(network)
	}
	service, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", err
	}
	addr, err := h.Lookup(ctx, service)
	if err != nil {
		return "", "", err
	}
	return net.JoinHostPort(addr.String(), port), service, nil
}
