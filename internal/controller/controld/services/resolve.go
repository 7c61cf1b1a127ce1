package services

import (
	"fmt"
	"net/netip"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/specs"
	"scaffold.dev/scaffold/internal/core/names"
)

// resolveTTL is how long an answer may be remembered: a name keeps its address for life, so this
// bounds only how long a removed service is still asked for.
const resolveTTL = 10

// ByName answers a host that asks for a service by name, with or without the domain.
func (x *Services) ByName(name string) (*apiv1.ResolveResponse, error) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	r, err := x.Named(strings.TrimSuffix(name, "."+x.cfg.Domain))
	if err != nil {
		return nil, err
	}
	x.cfg.Registrations.AskedFor(r.ID)
	return x.resolved(r), nil
}

func (x *Services) resolved(r names.Record) *apiv1.ResolveResponse {
	return &apiv1.ResolveResponse{
		Name: r.Name, Sid: r.ID.String(), Address: x.Address(r.ID), TtlSeconds: resolveTTL, Policy: specs.PolicyOf(r.Policy),
	}
}

// ByAddress names a service by its address, or a host by its identity or any address of its locator;
// only services have a serviceID in the answer.
func (x *Services) ByAddress(text string) (*apiv1.ResolveResponse, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return nil, fmt.Errorf("%w: address %.60q", names.ErrInvalid, text)
	}
	if id, ok := x.cfg.Space.ServiceOf(addr); ok {
		if r, ok := x.ByID(id); ok {
			return x.resolved(r), nil
		}
		return nil, fmt.Errorf("%v: %w", addr, names.ErrUnknown)
	}
	if host := x.cfg.Hosts.At(addr); host != "" {
		return &apiv1.ResolveResponse{Name: host, Address: addr.String(), TtlSeconds: resolveTTL}, nil
	}
	return nil, fmt.Errorf("%v: %w, and no host has it either", addr, names.ErrUnknown)
}
