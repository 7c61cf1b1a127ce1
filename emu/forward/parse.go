package forward

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

const routeForm = "expected PREFIX [via ADDRESS] port N [or [via ADDRESS] port N ...], blackhole PREFIX or unreachable PREFIX"

// ParseRoute reads a route as [Route.String] writes it.
func ParseRoute(s string) (Route, error) {
	words := strings.Fields(s)
	var r Route
	if len(words) == 2 {
		switch words[0] {
		case "blackhole":
			r.Kind, words = Blackhole, words[1:]
		case "unreachable":
			r.Kind, words = Unreachable, words[1:]
		}
	}
	if len(words) == 0 {
		return r, fmt.Errorf("route %q: %s", s, routeForm)
	}
	prefix, err := netip.ParsePrefix(words[0])
	if err != nil {
		return r, fmt.Errorf("route %q: %q is no prefix such as fd00::/64; %s", s, words[0], routeForm)
	}
	r.Prefix = prefix.Masked()
	for words = words[1:]; len(words) > 0 && r.Kind == Unicast; {
		var hop NextHop
		if hop, words, err = parseHop(words); err != nil {
			return r, fmt.Errorf("route %q: %w", s, err)
		}
		r.Hops = append(r.Hops, hop)
	}
	return r, r.validate()
}

// parseHop reads one next hop, and the "or" before the next.
func parseHop(words []string) (h NextHop, rest []string, err error) {
	if words[0] == "via" && len(words) > 1 {
		if h.Via, err = netip.ParseAddr(words[1]); err != nil {
			return h, nil, fmt.Errorf("via %q: expected an address such as fe80::1", words[1])
		}
		words = words[2:]
	}
	if len(words) < 2 || words[0] != "port" {
		return h, nil, fmt.Errorf("a port is missing; %s", routeForm)
	}
	if h.Port, err = strconv.Atoi(words[1]); err != nil {
		return h, nil, fmt.Errorf("port %q: expected a number; %s", words[1], routeForm)
	}
	words = words[2:]
	if len(words) > 0 {
		if words[0] != "or" || len(words) == 1 {
			return h, nil, fmt.Errorf("%q after a next hop: expected or and another one", words[0])
		}
		words = words[1:]
	}
	return h, words, nil
}
