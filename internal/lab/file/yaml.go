package file

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

// values reads what single values say, of whatever part of a file, and collects what is wrong with them.
type values struct {
	yamlfile.Reader
}

// A reader takes the YAML tree apart, one part of the file after the other.
type reader struct {
	values
	files map[string][]byte // that the file names, where they are known already

	partial bool     // nodes and links are missing: what refers to them is not to blame
	unrest  []*chaos // of the timeline
}

type fields = yamlfile.Fields

func newReader(path string, files map[string][]byte) *reader {
	return &reader{values: values{yamlfile.Reader{Path: path}}, files: files}
}

// The shared reader's, by the names that this package has for them.
func (r *values) errorf(line int, format string, args ...any)           { r.Errorf(line, 0, format, args...) }
func (r *values) err() error                                            { return r.Err() }
func (r *values) object(n *yaml.Node, what string, known fields)        { r.Object(n, what, known) }
func (r *values) list(n *yaml.Node, what string, read func(*yaml.Node)) { r.List(n, what, read) }
func (r *values) text(n *yaml.Node, what string) string                 { return r.Text(n, what) }
func (r *values) integer(n *yaml.Node, what string, low, high int) int {
	return r.Integer(n, what, low, high)
}
func (r *values) number(n *yaml.Node, what string, high float64) float64 {
	return r.Number(n, what, high)
}
func (r *values) oneOf(n *yaml.Node, what string, of ...string) string {
	return r.OneOf(n, what, of...)
}
func (r *values) each(n *yaml.Node, what string, read func(key, value *yaml.Node)) {
	r.Each(n, what, read)
}
func kindOf(n *yaml.Node) string      { return yamlfile.KindOf(n) }
func resolve(n *yaml.Node) *yaml.Node { return yamlfile.Resolve(n) }

// tree parses the text; nil if that failed.
func (r *values) tree(text []byte) *yaml.Node { return r.Tree(text, "a lab: name, nodes, links") }

func (r *values) seed(n *yaml.Node) *uint64 {
	v, err := strconv.ParseUint(n.Value, 0, 64)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.errorf(n.Line, "seed: expected a number from 0 to 2^64-1, found %s", kindOf(n))
	}
	return &v
}

func (r *values) boolean(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		r.errorf(n.Line, "%s: expected true or false, found %s", what, kindOf(n))
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

func (r *values) patience(n *yaml.Node) uint32 {
	ms, err := service.ParsePatience(r.text(n, "patience"))
	if err != nil {
		r.errorf(n.Line, "%v", err)
	}
	return ms
}

func (r *values) duration(n *yaml.Node, what string) time.Duration {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < 0 || d > 24*time.Hour {
		r.errorf(n.Line, "%s: expected a time such as 500ms or 2s, found %s", what, kindOf(n))
		return 0
	}
	return d
}
