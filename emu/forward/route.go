package forward

import (
	"fmt"
	"net/netip"
	"strings"
)

// A NextHop is where a route leads.
type NextHop struct {
	Port int `json:"port"`
	// Via is the neighbour that gets the packet where there are several, at a LAN; without it the packet's
	// destination is the neighbour. On a link to another router there is one, and Via means nothing.
	Via netip.Addr `json:"via,omitzero"`
}

// A Kind is what a route does.
type Kind uint8

// Kinds of routes.
const (
	Unicast     Kind = iota // to its next hops
	Blackhole               // drops, and nobody is told
	Unreachable             // drops, and the sender is told
)

// A Route says where packets to a prefix go: to one of its next hops, by the hash of their flow. A hop that is listed
// twice gets twice the share.
type Route struct {
	Prefix netip.Prefix `json:"prefix"`
	Kind   Kind         `json:"kind,omitempty"`
	Hops   []NextHop    `json:"hops,omitempty"`
}

// To is a route to one port.
func To(prefix netip.Prefix, port int) Route {
	return Route{Prefix: prefix, Hops: []NextHop{{Port: port}}}
}

func (r *Route) validate() error {
	switch {
	case !r.Prefix.IsValid():
		return fmt.Errorf("route to %v: expected a prefix such as fd00::/64", r.Prefix)
	case r.Kind == Unicast && len(r.Hops) == 0:
		return fmt.Errorf("route to %v: it has no next hop; give one, or make it a blackhole or unreachable", r.Prefix)
	case len(r.Hops) > maxGroup:
		return fmt.Errorf("route to %v: it has %d next hops; expected at most %d", r.Prefix, len(r.Hops), maxGroup)
	}
	for _, h := range r.Hops {
		if h.Port < 0 || h.Port >= maxPort {
			return fmt.Errorf("route to %v: port %d; expected 0 to %d", r.Prefix, h.Port, maxPort-1)
		}
	}
	return nil
}

// String is the route as ip route writes it.
func (r Route) String() string {
	switch r.Kind {
	case Blackhole:
		return "blackhole " + r.Prefix.String()
	case Unreachable:
		return "unreachable " + r.Prefix.String()
	}
	words := []string{r.Prefix.String()}
	for i, h := range r.Hops {
		if i > 0 {
			words = append(words, "or")
		}
		if h.Via.IsValid() {
			words = append(words, "via", h.Via.String())
		}
		words = append(words, "port", fmt.Sprint(h.Port))
	}
	return strings.Join(words, " ")
}
