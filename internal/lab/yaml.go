package lab

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	service "scaffold.dev/scaffold/internal/core/names"
)

// Errors are all that is wrong with a file, in the order of its lines.
type Errors []LineError

// A LineError says where a file is wrong and what was expected there.
type LineError struct {
	Path string
	Line int
	Text string
}

func (e LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text) }

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// A reader takes the YAML tree apart and collects what is wrong with it.
type reader struct {
	path  string
	files map[string][]byte // that the file names, where they are known already
	errs  Errors

	partial bool     // nodes and links are missing: what refers to them is not to blame
	unrest  []*chaos // of the timeline
}

func (r *reader) errorf(line int, format string, args ...any) {
	r.errs = append(r.errs, LineError{r.path, line, fmt.Sprintf(format, args...)})
}

// err is nil for a good file.
func (r *reader) err() error {
	if len(r.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errs, func(a, b LineError) int { return cmp.Compare(a.Line, b.Line) })
	return slices.Compact(r.errs)
}

// yamlLine is how the YAML parser names lines in its messages.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// tree parses the text; nil if that failed.
func (r *reader) tree(text []byte) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		line, at := 1, yamlLine.FindStringSubmatch(err.Error())
		if len(at) == 2 && at[1] != "" {
			line, _ = strconv.Atoi(at[1])
		}
		r.errorf(line, "not YAML: %s", yamlLine.ReplaceAllString(err.Error(), ""))
		return nil
	}
	if len(doc.Content) == 0 {
		r.errorf(1, "the file is empty; expected a lab: name, nodes, links")
		return nil
	}
	return doc.Content[0]
}

// resolve follows an alias. Anchors within themselves end at the reader's fixed depth.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// kindOf names what the file has, for messages.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

// fields are the keys that a mapping may have and what reads each.
type fields map[string]func(*yaml.Node)

// object reads a mapping with known keys.
func (r *reader) object(n *yaml.Node, what string, known fields) {
	r.each(n, what, func(key, value *yaml.Node) {
		read, ok := known[key.Value]
		if !ok {
			r.errorf(key.Line, "unknown key %q in %s; expected one of %s", key.Value, what,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			return
		}
		read(value)
	})
}

// each reads a mapping with free keys, none twice.
func (r *reader) each(n *yaml.Node, what string, read func(key, value *yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		r.errorf(n.Line, "%s: expected a mapping (key: value), found %s", what, kindOf(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), resolve(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			r.errorf(key.Line, "%s: a key must be a plain word, found %s", what, kindOf(key))
			continue
		}
		if first, twice := seen[key.Value]; twice {
			r.errorf(key.Line, "%s: %q stands twice (first on line %d)", what, key.Value, first)
			continue
		}
		seen[key.Value] = key.Line
		read(key, value)
	}
}

// list reads a list.
func (r *reader) list(n *yaml.Node, what string, read func(*yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		r.errorf(n.Line, "%s: expected a list, found %s", what, kindOf(n))
		return
	}
	for _, item := range n.Content {
		read(resolve(item))
	}
}

// text reads a string; what YAML takes for a number or a boolean is a string too.
func (r *reader) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.errorf(n.Line, "%s: expected text, found %s", what, kindOf(n))
		return ""
	}
	return n.Value
}

func (r *reader) integer(n *yaml.Node, what string, low, high int) int {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < low || v > high {
		r.errorf(n.Line, "%s: expected a number from %d to %d, found %s", what, low, high, kindOf(n))
		return low
	}
	return v
}

// number reads one from above 0 on.
func (r *reader) number(n *yaml.Node, what string, high float64) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(v > 0 && v <= high) {
		r.errorf(n.Line, "%s: expected a number above 0, up to %g, found %s", what, high, kindOf(n))
		return high
	}
	return v
}

func (r *reader) seed(n *yaml.Node) *uint64 {
	v, err := strconv.ParseUint(n.Value, 0, 64)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.errorf(n.Line, "seed: expected a number from 0 to 2^64-1, found %s", kindOf(n))
	}
	return &v
}

func (r *reader) boolean(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		r.errorf(n.Line, "%s: expected true or false, found %s", what, kindOf(n))
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

func (r *reader) oneOf(n *yaml.Node, what string, allowed ...string) string {
	if n.Kind == yaml.ScalarNode && slices.Contains(allowed, n.Value) {
		return n.Value
	}
	r.errorf(n.Line, "%s: expected one of %s, found %s", what, strings.Join(allowed, ", "), kindOf(n))
	return ""
}

func (r *reader) patience(n *yaml.Node) uint32 {
	ms, err := service.ParsePatience(r.text(n, "patience"))
	if err != nil {
		r.errorf(n.Line, "%v", err)
	}
	return ms
}

func (r *reader) duration(n *yaml.Node, what string) time.Duration {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < 0 || d > 24*time.Hour {
		r.errorf(n.Line, "%s: expected a time such as 500ms or 2s, found %s", what, kindOf(n))
		return 0
	}
	return d
}
