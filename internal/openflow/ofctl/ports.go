package ofctl

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// reserved are the ports that are none.
var reserved = map[string]ofp.Port{
	"in_port": ofp.PortIn, "normal": ofp.PortNormal, "flood": ofp.PortFlood, "all": ofp.PortAll, "local": ofp.PortLocal,
}

// parse reads a port's name or number. A name comes first: it may be a number.
func (ps Ports) parse(text string) (ofp.Port, error) {
	if p, ok := ps[text]; ok {
		return p, nil
	}
	if strings.EqualFold(text, "local") {
		return ofp.PortLocal, nil
	}
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil || n == 0 || ofp.Port(n) > ofp.PortMax {
		return 0, fmt.Errorf("the switch has no port %.40q: it has %s", text, ps)
	}
	return ofp.Port(n), nil
}

// name is how the port is called.
func (ps Ports) name(p ofp.Port) string {
	for _, name := range slices.Sorted(maps.Keys(ps)) {
		if ps[name] == p {
			return name
		}
	}
	if _, other := ps[p.String()]; other {
		return fmt.Sprintf("%#x", uint32(p)) // its number is another one's name
	}
	return p.String()
}

func (ps Ports) String() string {
	if len(ps) == 0 {
		return "none with a name"
	}
	names := slices.Sorted(maps.Keys(ps))
	if len(names) > 10 {
		names = append(names[:10], "...")
	}
	return strings.Join(names, ", ")
}
