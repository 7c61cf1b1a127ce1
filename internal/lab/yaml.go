package lab

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	service "scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/yamlfile"
)

// Errors are all that is wrong with a file, in the order of its lines.
type Errors = yamlfile.Errors

// A LineError says where a file is wrong and what was expected there.
type LineError = yamlfile.LineError

// A reader takes the YAML tree apart and collects what is wrong with it.
type reader struct {
	yamlfile.Reader
	files map[string][]byte // that the file names, where they are known already

	partial bool     // nodes and links are missing: what refers to them is not to blame
	unrest  []*chaos // of the timeline
}

type fields = yamlfile.Fields

func newReader(path string, files map[string][]byte) *reader {
	return &reader{Reader: yamlfile.Reader{Path: path}, files: files}
}

// The shared reader's, by the names that this package has for them.
func (r *reader) errorf(line int, format string, args ...any)           { r.Errorf(line, 0, format, args...) }
func (r *reader) err() error                                            { return r.Err() }
func (r *reader) object(n *yaml.Node, what string, known fields)        { r.Object(n, what, known) }
func (r *reader) list(n *yaml.Node, what string, read func(*yaml.Node)) { r.List(n, what, read) }
func (r *reader) text(n *yaml.Node, what string) string                 { return r.Text(n, what) }
func (r *reader) integer(n *yaml.Node, what string, low, high int) int {
	return r.Integer(n, what, low, high)
}
func (r *reader) number(n *yaml.Node, what string, high float64) float64 {
	return r.Number(n, what, high)
}
func (r *reader) oneOf(n *yaml.Node, what string, of ...string) string {
	return r.OneOf(n, what, of...)
}
func (r *reader) each(n *yaml.Node, what string, read func(key, value *yaml.Node)) {
	r.Each(n, what, read)
}
func kindOf(n *yaml.Node) string      { return yamlfile.KindOf(n) }
func resolve(n *yaml.Node) *yaml.Node { return yamlfile.Resolve(n) }

// tree parses the text; nil if that failed.
func (r *reader) tree(text []byte) *yaml.Node { return r.Tree(text, "a lab: name, nodes, links") }

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
