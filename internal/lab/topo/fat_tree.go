package topo

import "fmt"

// maxK keeps a fat tree, of 5k²/4 switches, below MaxGenerated.
const maxK = 88

// fatTree makes the three layers of switches of M. Al-Fares, A. Loukissas, A. Vahdat: A scalable,
// commodity data center network architecture (2008): (k/2)² core switches and k pods of k/2
// aggregation and k/2 edge switches. At each edge switch k/2 ports are left for hosts.
func fatTree(o Options) (*Graph, error) {
	if o.K < 2 || o.K > maxK || o.K%2 != 0 {
		return nil, fmt.Errorf("k is %d: expected an even number from 2 to %d, the ports of a switch", o.K, maxK)
	}
	g, half := &Graph{}, o.K/2
	g.number("core-", half*half)
	for pod := range o.K {
		first := len(g.Nodes)
		g.number(fmt.Sprintf("agg-%d-", pod+1), half)
		g.number(fmt.Sprintf("edge-%d-", pod+1), half)
		for a := range half {
			for i := range half {
				g.join(a*half+i, first+a)
				g.join(first+a, first+half+i)
			}
		}
	}
	return g, nil
}
