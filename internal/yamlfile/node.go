package yamlfile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Resolve follows an alias. Anchors within themselves end at the reader's fixed depth.
func Resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// shown is how many characters of a value an error repeats.
const shown = 40

// KindOf names what the file has, for messages.
func KindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	if text := []rune(n.Value); len(text) > shown { // of a file that was named by mistake nobody wants to see the whole
		return strconv.Quote(string(text[:shown])) + "..."
	}
	return strconv.Quote(n.Value)
}

// IsList reports whether a node is a list, IsValue whether it is a word, a number or the like.
func IsList(n *yaml.Node) bool { return n.Kind == yaml.SequenceNode }

// IsValue is said at IsList.
func IsValue(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag != "!!null" }

// Fields are the keys that a mapping may have and what reads each.
type Fields map[string]func(*yaml.Node)

// Object reads a mapping with known keys.
func (r *Reader) Object(n *yaml.Node, what string, known Fields) {
	r.Each(n, what, func(key, value *yaml.Node) {
		read, ok := known[key.Value]
		if !ok {
			r.At(key, "unknown key %q in %s; expected one of %s", key.Value, what,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			return
		}
		read(value)
	})
}

// Each reads a mapping with free keys, none twice.
func (r *Reader) Each(n *yaml.Node, what string, read func(key, value *yaml.Node)) {
	n = Resolve(n)
	if n.Kind != yaml.MappingNode {
		r.At(n, "%s: expected a mapping (key: value), found %s", what, KindOf(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := Resolve(n.Content[i]), Resolve(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			r.At(key, "%s: a key must be a plain word, found %s", what, KindOf(key))
			continue
		}
		if first, twice := seen[key.Value]; twice {
			r.At(key, "%s: %q stands twice (first on line %d)", what, key.Value, first)
			continue
		}
		seen[key.Value] = key.Line
		read(key, value)
	}
}

// List reads a list.
func (r *Reader) List(n *yaml.Node, what string, read func(*yaml.Node)) {
	n = Resolve(n)
	if n.Kind != yaml.SequenceNode {
		r.At(n, "%s: expected a list, found %s", what, KindOf(n))
		return
	}
	for _, item := range n.Content {
		read(Resolve(item))
	}
}

// Text reads a string; what YAML takes for a number or a boolean is a string too.
func (r *Reader) Text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.At(n, "%s: expected text, found %s", what, KindOf(n))
		return ""
	}
	return n.Value
}

// Integer reads one within bounds.
func (r *Reader) Integer(n *yaml.Node, what string, low, high int) int {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < low || v > high {
		r.At(n, "%s: expected a number from %d to %d, found %s", what, low, high, KindOf(n))
		return low
	}
	return v
}

// Number reads one from above 0 on.
func (r *Reader) Number(n *yaml.Node, what string, high float64) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(v > 0 && v <= high) {
		r.At(n, "%s: expected a number above 0, up to %g, found %s", what, high, KindOf(n))
		return high
	}
	return v
}

// OneOf reads one of several words.
func (r *Reader) OneOf(n *yaml.Node, what string, allowed ...string) string {
	if n.Kind == yaml.ScalarNode && slices.Contains(allowed, n.Value) {
		return n.Value
	}
	r.At(n, "%s: expected one of %s, found %s", what, strings.Join(allowed, ", "), KindOf(n))
	return ""
}
