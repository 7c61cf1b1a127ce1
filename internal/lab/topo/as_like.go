package topo

// asLike makes autonomous systems in the three tiers that the Internet has (A. Elmokashfi, A. Kvalbein,
// C. Dovrolis: On the scalability of BGP, 2010, has a model with measured parameters; this one has its
// shape only). The first tier are peers of each other. One system in seven of the others sells transit
// and has 1 to 3 providers before it, and every second of these a peer; the rest are stubs with 1 or 2
// providers. Who has many customers gets more (A.-L. Barabási, R. Albert, 1999). Providers of providers
// never lead in a circle, and from every system they lead up to the first tier.
func asLike(o Options) (*Graph, error) {
	m := &asModel{graph: &Graph{}, dice: newDice(o.Seed)}
	m.graph.number("as", o.Size)
	for n := range m.graph.Nodes {
		m.graph.Nodes[n].AS = uint32(n + 1)
	}
	top := min(o.Size, 3+o.Size/500)
	for a := range top {
		m.degree = append(m.degree, a)
		for b := range a {
			m.relate(b, a, Peer)
		}
	}
	transit := top + (o.Size-top)/7
	for n := top; n < transit; n++ {
		m.buy(n, 1+m.dice.below(3))
		m.degree = append(m.degree, n)
		if n%2 == 0 {
			m.peer(n, top)
		}
	}
	for n := transit; n < o.Size; n++ {
		m.buy(n, 1+m.dice.below(2))
	}
	return m.graph, nil
}

type asModel struct {
	graph  *Graph
	dice   dice
	degree []int // who sells transit, once for himself and once for each link
	joined map[[2]int]bool
}

func (m *asModel) relate(a, b int, r Relation) {
	m.graph.Links = append(m.graph.Links, Link{Ends: [2]int{a, b}, Relation: r})
	if m.joined == nil {
		m.joined = map[[2]int]bool{}
	}
	m.joined[[2]int{a, b}], m.joined[[2]int{b, a}] = true, true
}

// tries is how often another partner is drawn where one is linked already.
const tries = 8

// buy gives n up to count providers.
func (m *asModel) buy(n, count int) {
	for range count {
		for range tries {
			p := m.degree[m.dice.below(len(m.degree))]
			if p != n && !m.joined[[2]int{p, n}] {
				m.relate(p, n, Provider)
				m.degree = append(m.degree, p)
				break
			}
		}
	}
}

// peer gives n a peer below the first tier, if it meets one.
func (m *asModel) peer(n, top int) {
	for range tries {
		p := m.degree[m.dice.below(len(m.degree))]
		if p >= top && p != n && !m.joined[[2]int{p, n}] {
			m.relate(p, n, Peer)
			m.degree = append(m.degree, p, n)
			return
		}
	}
}
