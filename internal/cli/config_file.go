package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// A ConfigError says where a configuration file is wrong.
type ConfigError struct {
	Path string
	Line int
	Text string
}

func (e *ConfigError) Error() string { return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text) }

// A configFile is a daemon's flags as a file has them.
type configFile struct {
	path    string
	entries []entry
	used    []entry // those that no typed flag overrules
	errs    []*ConfigError
}

// An entry is one flag's value or, of one that can be repeated, its values.
type entry struct {
	key    string
	line   int
	list   bool
	values []scalar
}

// A scalar is a value, with YAML's opinion on what it is.
type scalar struct {
	text, tag string
	line      int
}

func (f *configFile) errorf(line int, format string, args ...any) {
	f.errs = append(f.errs, &ConfigError{f.path, line, fmt.Sprintf(format, args...)})
}

// err is all that is wrong, in the order of lines; nil for a good file.
func (f *configFile) err() error {
	slices.SortStableFunc(f.errs, func(a, b *ConfigError) int { return cmp.Compare(a.Line, b.Line) })
	all := make([]error, len(f.errs))
	for i, e := range f.errs {
		all[i] = e
	}
	return errors.Join(all...)
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parseConfig takes a file apart without knowing which flags there are.
func parseConfig(path string, text []byte) (*configFile, error) {
	f := &configFile{path: path}
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return f, nil // nothing but comments
	}
	if err == nil {
		if err = decoder.Decode(&second); err == nil {
			f.errorf(second.Line, "a second document begins here; all keys belong into one")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		line := 1
		if at := yamlLine.FindStringSubmatch(err.Error()); len(at) == 2 && at[1] != "" {
			line, _ = strconv.Atoi(at[1])
		}
		f.errorf(line, "not YAML: %s", yamlLine.ReplaceAllString(err.Error(), ""))
		return f, f.err()
	}
	f.mapping(unalias(doc.Content[0]))
	return f, f.err()
}

func (f *configFile) mapping(top *yaml.Node) {
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return
	}
	if top.Kind != yaml.MappingNode {
		f.errorf(top.Line, "expected lines of KEY: VALUE, found %s", kindOf(top))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := unalias(top.Content[i]), unalias(top.Content[i+1])
		if first, twice := seen[key.Value]; twice {
			f.errorf(key.Line, "%q stands twice, first on line %d", key.Value, first)
			continue
		}
		seen[key.Value] = key.Line
		f.entry(key, value)
	}
}

func (f *configFile) entry(key, value *yaml.Node) {
	e := entry{key: key.Value, line: key.Line}
	items := []*yaml.Node{value}
	if e.list = value.Kind == yaml.SequenceNode; e.list {
		items = value.Content
	}
	for _, item := range items {
		item = unalias(item)
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			f.errorf(cmp.Or(item.Line, key.Line), "%s: expected a value, found %s", e.key, kindOf(item))
			return
		}
		e.values = append(e.values, scalar{item.Value, item.Tag, item.Line})
	}
	f.entries = append(f.entries, e)
}

// unalias goes to what an alias stands for.
func unalias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys below it"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

// A valueError is what a flag had to say to a value.
type valueError struct {
	line int
	text string
}

// set gives the flag the entry's value; where one was typed the flag has that again afterwards.
func (e entry) set(v pflag.Value, typed bool) *valueError {
	if many, ok := v.(pflag.SliceValue); ok {
		return e.setMany(v, many, typed)
	}
	if e.list {
		return &valueError{e.line, "expected one value, found a list"}
	}
	before, s := v.String(), e.values[0]
	if v.Type() == "bool" && s.tag != "!!bool" {
		return &valueError{s.line, fmt.Sprintf("expected true or false, found %q", s.text)}
	}
	if err := v.Set(s.text); err != nil {
		return &valueError{s.line, fmt.Sprintf("%q is no %s: %s", s.text, typeName(v), reason(err))}
	}
	if typed {
		v.Set(before)
	}
	return nil
}

func (e entry) setMany(v pflag.Value, many pflag.SliceValue, typed bool) *valueError {
	before := many.GetSlice()
	many.Replace(nil)
	for _, s := range e.values {
		if err := v.Set(s.text); err != nil {
			return &valueError{s.line, fmt.Sprintf("%q: %s", s.text, reason(err))}
		}
	}
	if typed {
		many.Replace(before)
	}
	return nil
}

func typeName(v pflag.Value) string {
	switch t := v.Type(); t {
	case "duration":
		return "time such as 500ms or 2s"
	case "string", "bool":
		return t
	default:
		if strings.HasPrefix(t, "uint") || strings.HasPrefix(t, "int") {
			return "number that fits"
		}
		return t
	}
}

// reason is the part of a parser's error that says something new.
func reason(err error) string {
	var number *strconv.NumError
	if errors.As(err, &number) {
		return number.Err.Error()
	}
	return err.Error()
}
