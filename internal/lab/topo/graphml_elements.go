package topo

import (
	"encoding/xml"
	"maps"
	"slices"
)

func (r *graphML) key(e xml.StartElement) error {
	id, line := attr(e, "id"), r.line()
	k := graphMLKey{name: attr(e, "attr.name"), domain: attr(e, "for")}
	if _, twice := r.keys[id]; twice || id == "" {
		return mistake(line, "key %q stands twice or has no id", cut(id))
	}
	err := r.each(map[string]func(xml.StartElement) error{"default": func(xml.StartElement) error {
		text, err := r.text()
		k.value = &text
		return err
	}})
	r.keys[id] = k
	return err
}

func (r *graphML) network(e xml.StartElement) error {
	if r.seen {
		return mistake(r.line(), "a second graph; expected one, and none inside another")
	}
	r.seen = true
	switch dir := attr(e, "edgedefault"); dir {
	case "directed":
		r.directed = true
	case "undirected", "":
	default:
		return mistake(r.line(), "edgedefault %q; expected directed or undirected", cut(dir))
	}
	r.graph.Name = attr(e, "id")
	return r.each(map[string]func(xml.StartElement) error{
		"node": r.element, "edge": r.element, "hyperedge": r.refuse, "data": r.graphData,
	})
}

func (r *graphML) refuse(e xml.StartElement) error {
	return mistake(r.line(), "<%s>; expected nodes and edges only", e.Name.Local)
}

// graphData is data of the whole graph, of which the name is of use.
func (r *graphML) graphData(e xml.StartElement) error {
	a, err := r.data(e)
	if err == nil && (fold(a.key) == "network" || fold(a.key) == "name") && a.value != "" {
		r.graph.Name = a.value
	}
	return err
}

// element reads a node or an edge.
func (r *graphML) element(e xml.StartElement) error {
	line, attributes := r.line(), []attribute{}
	said := map[string]bool{}
	err := r.each(map[string]func(xml.StartElement) error{
		"graph": r.network, "port": r.refuse,
		"data": func(e xml.StartElement) error {
			a, err := r.data(e)
			attributes, said[attr(e, "key")] = append(attributes, a), true
			return err
		},
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.keys)) {
		k := r.keys[id]
		if k.value != nil && !said[id] && (k.domain == e.Name.Local || k.domain == "all") {
			attributes = append(attributes, attribute{k.name, *k.value, line})
		}
	}
	if e.Name.Local == "node" {
		return r.node(attr(e, "id"), attributes, line)
	}
	return r.edge(edge{attr(e, "source"), attr(e, "target"), attributes, line})
}

func (r *graphML) data(e xml.StartElement) (attribute, error) {
	line, id := r.line(), attr(e, "key")
	k, ok := r.keys[id]
	if !ok {
		return attribute{}, mistake(line, "data of key %q, which no <key> before declares", cut(id))
	}
	text, err := r.text()
	return attribute{k.name, text, line}, err
}
