package file

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MakeTopology makes a topology of keys and values as a lab file has them under topology; files are relative to the
// working directory. The error has a line of text for each mistake.
func MakeTopology(settings []Pair) (*Topology, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Line: 1}
	for _, p := range settings {
		value := scalar(p.Value, 1)
		if p.Value == "true" || p.Value == "false" {
			value.Tag = "!!bool"
		}
		n.Content = append(n.Content, scalar(p.Key, 1), value)
	}
	r := &reader{}
	w := topologyReader{r}.readTopology(&File{}, n)
	if err := r.texts(); err != nil {
		return nil, err
	}
	w.Topology.written = w
	return &w.Topology, nil
}

// texts are mistakes without places.
func (r *reader) texts() error {
	var all []error
	for _, e := range r.Errs {
		all = append(all, errors.New(e.Text))
	}
	return errors.Join(all...)
}

// LabFile writes all nodes and links as the nodes and links of a lab file, which it would take.
func (t *Topology) LabFile() (string, error) {
	r := &reader{}
	topologyReader{r}.expand(&File{}, t.written)
	if err := r.texts(); err != nil {
		return "", err
	}
	wires, err := t.wires()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("nodes:\n")
	for _, n := range t.Graph.Nodes {
		kind := string(t.Kind)
		if t.Kind == FRR && n.AS > 0 {
			kind = fmt.Sprintf("{kind: %s, as: %d}", t.Kind, n.AS)
		}
		fmt.Fprintf(&out, "  %s: %s", quoted(n.Name), kind)
		if !strings.EqualFold(n.Label, n.Name) {
			fmt.Fprintf(&out, "  # %s", strings.Trim(fmt.Sprintf("%q", n.Label), `"`))
		}
		out.WriteByte('\n')
	}
	if len(wires) == 0 {
		return out.String(), nil
	}
	out.WriteString("links:\n")
	for _, w := range wires {
		fmt.Fprintf(&out, "  - %s\n", w)
	}
	return out.String(), nil
}

// quoted keeps YAML from taking a name for something else.
func quoted(name string) string {
	var v any
	if err := yaml.Unmarshal([]byte(name), &v); err == nil && v == any(name) {
		return name
	}
	return `"` + name + `"`
}

// String is the link as a line of a lab file.
func (w wire) String() string {
	ends := "[" + quoted(w.ends[0]) + ", " + quoted(w.ends[1]) + "]"
	words := pairTexts(w.both)
	for i, pairs := range w.way {
		if len(pairs) > 0 {
			words = append(words, fmt.Sprintf("%q: {%s}", w.ends[i]+"->"+w.ends[1-i], strings.Join(pairTexts(pairs), ", ")))
		}
	}
	if len(words) == 0 {
		return ends
	}
	return "{ends: " + ends + ", " + strings.Join(words, ", ") + "}"
}

func pairTexts(pairs []Pair) (texts []string) {
	for _, p := range pairs {
		texts = append(texts, p.Key+": "+p.Value)
	}
	return texts
}
