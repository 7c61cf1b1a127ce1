package topo

import "strings"

func readGML(text []byte) (*Graph, error) {
	s := &gmlScanner{text: text, line: 1}
	all, err := s.list(0)
	if err != nil {
		return nil, err
	}
	var graph *gmlPair
	for i, p := range all {
		switch {
		case !strings.EqualFold(p.key, "graph"):
		case p.list == nil:
			return nil, mistake(p.line, "graph is %q; expected a list in brackets", cut(p.text))
		case graph != nil:
			return nil, mistake(p.line, "a second graph (the first is on line %d); expected one", graph.line)
		default:
			graph = &all[i]
		}
	}
	if graph == nil {
		return nil, mistake(1, "not GML: expected graph [ ... ]")
	}
	return readGMLGraph(graph.list)
}

func readGMLGraph(list []gmlPair) (*Graph, error) {
	b := newBuilder()
	for _, p := range list {
		var err error
		switch strings.ToLower(p.key) {
		case "directed":
			b.directed = p.text == "1"
		case "label", "name", "network":
			b.graph.Name = p.text
		case "node":
			err = b.gmlNode(p)
		case "edge":
			err = b.gmlEdge(p)
		}
		if err != nil {
			return nil, err
		}
	}
	return b.finish()
}

func (b *builder) gmlNode(p gmlPair) error {
	id, ok := p.value("id")
	if !ok {
		return mistake(p.line, "a node without an id")
	}
	return b.node(id, p.attributes(), p.line)
}

func (b *builder) gmlEdge(p gmlPair) error {
	from, ok1 := p.value("source")
	to, ok2 := p.value("target")
	if !ok1 || !ok2 {
		return mistake(p.line, "an edge without source or target")
	}
	return b.edge(edge{from, to, p.attributes(), p.line})
}

// value finds a text in a list.
func (p gmlPair) value(key string) (string, bool) {
	for _, q := range p.list {
		if strings.EqualFold(q.key, key) && q.list == nil {
			return q.text, true
		}
	}
	return "", false
}

// attributes are the texts of a list.
func (p gmlPair) attributes() (all []attribute) {
	for _, q := range p.list {
		if q.list == nil {
			all = append(all, attribute{q.key, q.text, q.line})
		}
	}
	return all
}
