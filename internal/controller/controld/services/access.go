package services

import (
	"fmt"
	"slices"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/specs"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
)

// UpdateAccess replaces who may serve a service and who may connect to it. Its key is for life. An empty list takes one
// that is there away only if the caller says so: it may be that of a variable that nobody set, and everybody would be let in.
func (x *Services) UpdateAccess(m *apiv1.UpdateAccessRequest) (orders.Change, error) {
	r, err := x.Lookup(m.Name)
	if err != nil {
		return orders.Change{}, err
	}
	access, err := x.accessFrom(m.Access)
	if err == nil {
		err = meant(m, r)
	}
	if err != nil {
		return orders.Change{}, err
	}
	if len(access.Key) == 0 {
		access.Key = r.Access.Key
	}
	if string(access.Key) != string(r.Access.Key) {
		return orders.Change{}, fmt.Errorf("%w: service %s: its serviceID follows from its key, which is for life: remove the service and make it with the other key", orders.ErrConflict, r.Name)
	}
	if err := x.unchanged(r, m.Version, m.Replace, "its access"); err != nil {
		return orders.Change{}, err
	}
	after, err := x.With(r.Name, r.Policy, access, r.Applied)
	if err != nil {
		return orders.Change{}, err
	}
	return orders.Change{Records: []store.Change{store.PutService(after)}, Effect: func() { x.Set(after, true) },
		Says: []*apiv1.Event{specs.Rewritten("service.access", "who may serve and connect changed", r, after)}}, nil
}

// meant refuses to empty a list unless that is said, and to say it beside a list.
func meant(req *apiv1.UpdateAccessRequest, r names.Record) error {
	for _, list := range []struct {
		what, all string
		any       bool
		now, want []string
	}{
		{"servers", "any_server: every host may serve", req.AnyServer, r.Access.Servers, req.GetAccess().GetServers()},
		{"allow", "any_client: everybody may connect", req.AnyClient, r.Access.Allow, req.GetAccess().GetAllow()},
	} {
		switch {
		case list.any && len(list.want) > 0:
			return fmt.Errorf("%w: service %s: %s has entries, and %s: one of them", names.ErrInvalid, r.Name, list.what, list.all)
		case !list.any && len(list.want) == 0 && len(list.now) > 0:
			return fmt.Errorf("%w: service %s: %s: an empty list is no list, and it has %d entries now: to take them away say %s (scaffold service access %s --%s any)",
				names.ErrInvalid, r.Name, list.what, len(list.now), list.all, r.Name, map[string]string{"servers": "server", "allow": "allow"}[list.what])
		}
	}
	return nil
}

func (x *Services) accessFrom(a *apiv1.Access) (names.Access, error) {
	key, err := names.ParseKey(a.GetKey())
	if err != nil {
		return names.Access{}, fmt.Errorf("%w: %w", names.ErrInvalid, err)
	}
	return names.Access{Key: key, Servers: a.GetServers(), Allow: x.withoutDomain(a.GetAllow())}, nil
}

// withoutDomain takes the domain off the services in a list.
func (x *Services) withoutDomain(allow []string) []string {
	allow = slices.Clone(allow)
	for i, text := range allow {
		if name, ok := strings.CutPrefix(text, names.ServicePrefix); ok && !x.Has(name) {
			allow[i] = names.ServicePrefix + names.WithoutDomain(name, x.cfg.Domain)
		}
	}
	return allow
}

// Nameless says which hosts and services of lists are not there: they may come yet, or were mistyped.
func (x *Services) Nameless(hosts, allow []string, knows func(service string) bool) (warnings []string) {
	hosts = slices.Clone(hosts)
	for i, s := range hosts {
		hosts[i], _, _ = strings.Cut(s, ":")
	}
	for _, text := range allow {
		a, err := names.ParseAllowed(text)
		if err == nil && a.Host != "" && text != names.Nobody {
			hosts = append(hosts, a.Host)
		}
		if err == nil && a.Service != "" && !knows(a.Service) {
			warnings = append(warnings, "allow: there is no service "+a.Service)
		}
	}
	for _, h := range hosts {
		if !x.cfg.Hosts.Known(h) {
			warnings = append(warnings, "no host "+h+" has ever joined")
		}
	}
	return warnings
}
