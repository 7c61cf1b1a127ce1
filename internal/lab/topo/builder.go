package topo

// A builder makes a graph of what a reader finds. Links may come before their nodes.
type builder struct {
	graph    *Graph
	directed bool // the file has a link for each direction
	index    map[string]int
	lines    []int     // of the nodes
	placed   *Position // of some node, nil where none has one yet
	edges    []edge
	names    *namer
}

// An edge is a link as a file has it.
type edge struct {
	from, to   string // ids of nodes
	attributes []attribute
	line       int
}

func newBuilder() *builder {
	return &builder{graph: &Graph{}, index: map[string]int{}, names: newNamer()}
}

func (b *builder) node(id string, attributes []attribute, line int) error {
	if first, twice := b.index[id]; twice {
		return mistake(line, "node %q stands twice (first on line %d)", cut(id), b.lines[first])
	}
	if len(b.graph.Nodes) == MaxNodes {
		return mistake(line, "more than %d nodes", MaxNodes)
	}
	label, at, err := describe(attributes)
	if err != nil {
		return err
	}
	if label == "" {
		label = id
	}
	if at != nil && b.placed != nil && at.Flat != b.placed.Flat {
		return mistake(line, "node %q: some nodes have a place on the globe and some in a plane; expected one kind", cut(label))
	}
	if at != nil {
		b.placed = at
	}
	b.index[id] = b.graph.add(b.names.name(label, len(b.graph.Nodes)+1), label, at)
	b.lines = append(b.lines, line)
	return nil
}

func (b *builder) edge(e edge) error {
	if len(b.edges) == MaxLinks {
		return mistake(e.line, "more than %d links", MaxLinks)
	}
	b.edges = append(b.edges, e)
	return nil
}

// finish joins the nodes.
func (b *builder) finish() (*Graph, error) {
	if len(b.graph.Nodes) == 0 {
		return nil, mistake(0, "no node; expected at least one")
	}
	single := map[[2]int][]int{} // links of a directed graph whose way back has not come
	for _, e := range b.edges {
		l, err := b.link(e)
		if err != nil {
			return nil, err
		}
		back := [2]int{l.Ends[1], l.Ends[0]}
		if wait := single[back]; b.directed && len(wait) > 0 {
			single[back] = wait[1:]
			if err := b.graph.Links[wait[0]].pair(l, e.line); err != nil {
				return nil, err
			}
			continue
		}
		single[l.Ends] = append(single[l.Ends], len(b.graph.Links))
		b.graph.Links = append(b.graph.Links, l)
	}
	return b.graph, nil
}

// link reads one edge.
func (b *builder) link(e edge) (l Link, err error) {
	if l, err = measure(e.attributes); err != nil {
		return l, err
	}
	for i, id := range []string{e.from, e.to} {
		n, ok := b.index[id]
		if !ok {
			return l, mistake(e.line, "link to unknown node %q", cut(id))
		}
		l.Ends[i] = n
	}
	if l.Ends[0] == l.Ends[1] {
		return l, mistake(e.line, "link from %q to itself; a router needs none: remove it", cut(e.from))
	}
	return l, nil
}

// pair makes two edges of opposite directions one link.
func (l *Link) pair(back Link, line int) error {
	switch {
	case l.Length > 0 && back.Length > 0 && l.Length != back.Length:
		return mistake(line, "the link is %g km long, and %g km in the other direction", back.Length, l.Length)
	case l.Relation != "" && back.Relation != "" && (l.Relation != Peer || back.Relation != Peer):
		return mistake(line, "the link has relation %s, and %s in the other direction; expected one, or %s in both", back.Relation, l.Relation, Peer)
	}
	if l.Relation == "" && back.Relation != "" { // the relation reads from the first end to the second
		l.Ends, l.Ways = back.Ends, [2]Way{back.Ways[0], l.Ways[0]}
		l.Length, l.Relation = max(l.Length, back.Length), back.Relation
		return nil
	}
	l.Length, l.Ways[1] = max(l.Length, back.Length), back.Ways[0]
	return nil
}
