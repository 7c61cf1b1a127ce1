package lane

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
)

// A Name is a port of a service whose connections agents are to carry.
type Name struct {
	Service string
	Server  netip.AddrPort // the service's address
	Sites   []string       // where somebody serves it
}

// PlanNames makes the lanes of names: at each site where nobody serves one, and others do elsewhere, each agent that is there takes
// connections to it. Which of them a client comes to the network decides, by weights; so they are not divided by slots. Clients are
// all whom the network leads there, which clients says. The numbers are none of those that are taken.
func PlanNames(s State, names []Name, clients netip.Prefix, taken []Lane) (all []Lane) {
	p := planner{State: &s, taken: map[uint64]bool{}, given: map[string]float64{}}
	for i := range taken {
		p.taken[taken[i].Number] = true
	}
	names = slices.SortedFunc(slices.Values(names), func(a, b Name) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), a.Server.Compare(b.Server))
	})
	for _, n := range names {
		var nears, fars []*Agent
		for i := range s.Agents {
			a := &s.Agents[i]
			switch {
			case a.Site == "" || !a.Names || !a.usable():
			case slices.Contains(n.Sites, a.Site):
				fars = append(fars, a)
			default:
				nears = append(nears, a)
			}
		}
		if len(fars) == 0 {
			continue
		}
		for _, near := range nears {
			l := Lane{Entry: n.Service, Client: clients, Server: netip.PrefixFrom(n.Server.Addr(), 128), Port: n.Server.Port(), Near: near.Name, AtOnce: true, Named: true}
			for _, far := range p.order(near, fars) {
				l.Far = append(l.Far, far.Name)
			}
			l.Number = p.numberOfName(n, near.Name)
			all = append(all, l)
		}
	}
	return all
}

// numberOfName is a named lane's own at every controller.
func (p *planner) numberOfName(n Name, near string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%v\x00%s", n.Server, near)
	number := h.Sum64()
	for number == 0 || p.taken[number] {
		number++
	}
	p.taken[number] = true
	return number
}
