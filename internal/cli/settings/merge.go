package settings

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Setting is a flag that was typed, as a configuration file has it.
type Setting struct {
	Key   string
	Value yaml.Node
}

// line is the setting in one line of YAML.
func (s Setting) line() (string, error) {
	text, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: s.Key}, &s.Value}})
	return string(text), err
}

// Merge puts settings into the text of a configuration file: each in the place of the one that it replaces, a new
// one at the end. All else stays as it is, to the byte. changes says for people what becomes of what.
func Merge(path string, old []byte, typed []Setting) (text []byte, changes []string, err error) {
	file, err := Parse(path, old)
	if err != nil {
		return nil, nil, err
	}
	lines := bytes.SplitAfter(old, []byte("\n"))
	if n := len(lines); n > 0 && len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	var added [][]byte
	for _, s := range typed {
		line, err := s.line()
		if err != nil {
			return nil, nil, err
		}
		e := file.Find(s.Key)
		if e == nil {
			added = append(added, []byte(line))
			changes = append(changes, strings.TrimSpace(line)+" (new)")
			continue
		}
		if e.same(s.Value) {
			continue
		}
		first, last := extent(lines, e.line-1)
		if !bytes.HasPrefix(lines[first], []byte(s.Key+":")) {
			return nil, nil, fmt.Errorf("%s:%d: %s cannot be changed in a line that has other keys, too: edit it, and install again without flags", path, e.line, s.Key)
		}
		changes = append(changes, fmt.Sprintf("%s (was %s)", strings.TrimSpace(line), e.Text()))
		lines[first] = []byte(line)
		for i := first + 1; i < last; i++ {
			lines[i] = nil
		}
	}
	if n := len(lines); len(added) > 0 && n > 0 && !bytes.HasSuffix(lines[n-1], []byte("\n")) {
		lines[n-1] = append(lines[n-1 : n : n][0], '\n')
	}
	text = bytes.Join(append(lines, added...), nil)
	return text, changes, file.unhurt(path, text, typed)
}

// unhurt looks that the merged text says what was typed and else what the file said: YAML has more ways to write things
// than are changed here.
func (f *File) unhurt(path string, text []byte, typed []Setting) error {
	now, err := Parse(path, text)
	if err != nil {
		return fmt.Errorf("%s: what was typed does not fit into it: edit it, and install again without flags: %w", path, err)
	}
	for _, s := range typed {
		if e := now.Find(s.Key); e == nil || !e.same(s.Value) {
			return fmt.Errorf("%s: %s cannot be changed as it is written there: edit it, and install again without flags", path, s.Key)
		}
	}
	for _, e := range f.entries {
		if n := now.Find(e.key); !slices.ContainsFunc(typed, func(s Setting) bool { return s.Key == e.key }) && (n == nil || n.Text() != e.Text()) {
			return fmt.Errorf("%s: what was typed would change %s, too: edit it, and install again without flags", path, e.key)
		}
	}
	return nil
}

// extent is where an entry of the file begins and what follows it begins: its further lines are indented, or are the
// items of its list.
func extent(lines [][]byte, first int) (from, to int) {
	for to = first + 1; to < len(lines) && bytes.ContainsRune([]byte(" \t-"), rune(lines[to][0])) && len(bytes.TrimSpace(lines[to])) > 0; to++ {
	}
	return first, to
}

// Find is the entry of a key, or nil.
func (f *File) Find(key string) *entry {
	for i := range f.entries {
		if f.entries[i].key == key {
			return &f.entries[i]
		}
	}
	return nil
}

// same reports whether an entry says what a setting says.
func (e *entry) same(value yaml.Node) bool {
	items := []*yaml.Node{&value}
	if value.Kind == yaml.SequenceNode {
		items = value.Content
	}
	if e.list != (value.Kind == yaml.SequenceNode) && len(items) != 1 || len(items) != len(e.values) {
		return false
	}
	for i, item := range items {
		if item.Value != e.values[i].text {
			return false
		}
	}
	return true
}

// Text is what an entry says, for people.
func (e *entry) Text() string {
	var all []string
	for _, v := range e.values {
		all = append(all, v.text)
	}
	if e.list {
		return "[" + strings.Join(all, ", ") + "]"
	}
	return strings.Join(all, ", ")
}
