package guests

import (
	"fmt"
	"slices"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A Listed is a guest as people are shown it.
type Listed struct {
	Number uint16
	*apiv1.Guest
}

// List tells them in the order in which they came.
func (g *Guests) List() (all []Listed) {
	for _, r := range g.wanted {
		shown := &apiv1.Guest{Name: r.Name, Netns: r.Path, Trouble: "is set up when the host is in a network"}
		if x := g.up[r.Number]; x != nil {
			shown = x.show()
		}
		all = append(all, Listed{r.Number, shown})
	}
	return all
}

func (x *guest) show() *apiv1.Guest {
	g := &apiv1.Guest{Name: x.Name, Netns: x.Path, Identity: x.identity.String(), Interface: x.dev(), Mtu: uint32(x.mtu), SinceUnixMs: x.Since.UnixMilli(), Serve: x.Serve}
	trouble := x.unserved()
	if x.mute != "" {
		trouble = append(trouble, "finds no names: "+x.mute)
	}
	g.Trouble = strings.Join(trouble, "; ")
	for _, t := range x.in.Registry.Of(x.Number) {
		g.Serves = append(g.Serves, fmt.Sprintf("%s %v/%d", x.in.Registry.Name(t.Service), t.Proto, t.Port))
	}
	slices.Sort(g.Serves)
	return g
}
