package settings

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/yamlfile"
)

// A File is a daemon's flags as a file has them.
type File struct {
	yamlfile.Reader
	entries []entry
	used    []entry // those that no typed flag overrules
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

// Parse takes a file apart without knowing which flags there are.
func Parse(path string, text []byte) (*File, error) {
	f := &File{Reader: yamlfile.Reader{Path: path}}
	all := f.Trees(text)
	if len(all) > 1 {
		f.Errorf(all[1].Line, 0, "a second document begins here; all keys belong into one")
	}
	if len(all) > 0 && len(f.Errs) == 0 {
		f.Each(all[0], "the file", f.entry)
	}
	return f, f.Err()
}

func (f *File) entry(key, value *yamlfile.Node) {
	e := entry{key: key.Value, line: key.Line, list: yamlfile.IsList(value)}
	items := []*yamlfile.Node{value}
	if e.list {
		items = value.Content
	}
	for _, item := range items {
		item = yamlfile.Resolve(item)
		if !yamlfile.IsValue(item) {
			f.Errorf(cmp.Or(item.Line, key.Line), 0, "%s: expected a value, found %s", e.key, yamlfile.KindOf(item))
			return
		}
		e.values = append(e.values, scalar{item.Value, item.Tag, item.Line})
	}
	f.entries = append(f.entries, e)
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
		v.Set(before) //nolint:errcheck // it took it before
	}
	return nil
}

func (e entry) setMany(v pflag.Value, many pflag.SliceValue, typed bool) *valueError {
	before := many.GetSlice()
	many.Replace(nil) //nolint:errcheck // nothing to refuse
	for _, s := range e.values {
		if err := v.Set(s.text); err != nil {
			return &valueError{s.line, fmt.Sprintf("%q: %s", s.text, reason(err))}
		}
	}
	if typed {
		many.Replace(before) //nolint:errcheck // it took them before
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
