package config

import (
	"fmt"
	"strings"

	"scaffold.dev/scaffold/internal/core/names"
)

// A ServiceSpec is a service to create at start where it does not exist yet.
type ServiceSpec struct {
	Name   string
	Policy names.Policy
}

// ParseServiceSpec reads NAME[:KEY=VALUE,...] with the keys ready, weight, datagrams, dscp, failover, patience and drain.
func ParseServiceSpec(s string) (ServiceSpec, error) {
	name, rest, _ := strings.Cut(s, ":")
	spec := ServiceSpec{Name: name}
	for rest != "" {
		var field string
		field, rest, _ = strings.Cut(rest, ",")
		if err := spec.set(field); err != nil {
			return spec, fmt.Errorf("service %q: %w", s, err)
		}
	}
	return spec, spec.Policy.Check()
}

func (s *ServiceSpec) set(field string) error {
	key, value, _ := strings.Cut(field, "=")
	var err error
	switch key {
	case "ready":
		s.Policy.Ready = value
	case "failover":
		s.Policy.Failover = value
	case "drain":
		s.Policy.Drain = value
	case "datagrams":
		s.Policy.Datagrams = value
	case "patience":
		if s.Policy.Patience, err = names.ParsePatience(value); err != nil {
			return err
		}
	case "weight":
		_, err = fmt.Sscan(value, &s.Policy.Weight)
	case "dscp":
		_, err = fmt.Sscan(value, &s.Policy.DSCP)
	default:
		return fmt.Errorf("policy %q: want ready=, weight=, datagrams=, dscp=, failover=, patience= or drain=, joined by commas", field)
	}
	if err != nil {
		return fmt.Errorf("policy %q: want a number", field)
	}
	return nil
}
