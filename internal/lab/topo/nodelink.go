package topo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Node-link JSON is what networkx writes: an object with the lists nodes and links, or edges since
// networkx 3.4. A link's source and target are ids of nodes, or as networkx 1 and D3 have it their
// numbers from 0.
type nodeLink struct {
	*builder
	text    []byte
	in      *json.Decoder
	links   string          // the key under which links were found
	named   map[string]bool // the ids of nodes that are no numbers
	at, row int             // an offset and its line, to count lines once
}

func readNodeLink(text []byte) (*Graph, error) {
	r := &nodeLink{builder: newBuilder(), text: text, in: json.NewDecoder(bytes.NewReader(text)), named: map[string]bool{}, row: 1}
	r.in.UseNumber()
	if err := r.read(); err != nil {
		return nil, r.locate(err)
	}
	if _, err := r.in.Token(); !errors.Is(err, io.EOF) {
		return nil, mistake(r.line(), "something behind the end of the JSON object")
	}
	r.byNumber()
	return r.finish()
}

// line is where the decoder stands.
func (r *nodeLink) line() int {
	to := int(r.in.InputOffset())
	r.row += bytes.Count(r.text[r.at:to], []byte{'\n'})
	r.at = to
	return r.row
}

// begin is the line of the value that comes next, beyond the comma and blanks before it.
func (r *nodeLink) begin() int {
	from := int(r.in.InputOffset())
	blank := len(r.text[from:]) - len(bytes.TrimLeft(r.text[from:], " \t\r\n,:"))
	return r.line() + bytes.Count(r.text[from:from+blank], []byte{'\n'})
}

// locate gives a line to what the decoder says.
func (r *nodeLink) locate(err error) error {
	var bad *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var known *Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &bad):
		return mistake(r.begin(), "not JSON: %v", err) // of the value: where in it depends on the version of encoding/json
	case errors.As(err, &kind):
		return mistake(r.line(), "expected a value of type %v, found a %s", kind.Type, kind.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return mistake(1+bytes.Count(r.text, []byte{'\n'}), "not JSON: it ends too early")
	}
	return mistake(r.line(), "%v", err)
}

func (r *nodeLink) read() error {
	if err := r.open('{', "an object with nodes and links"); err != nil {
		return err
	}
	for r.in.More() {
		key, err := r.in.Token()
		if err != nil {
			return err
		}
		if err := r.field(fmt.Sprint(key)); err != nil {
			return err
		}
	}
	if _, err := r.in.Token(); err != nil {
		return err
	}
	if r.links == "" {
		return mistake(r.line(), "not node-link JSON: expected a list links or edges")
	}
	return nil
}

func (r *nodeLink) open(bracket json.Delim, what string) error {
	line := r.begin()
	t, err := r.in.Token()
	if err == nil && t != bracket {
		err = mistake(line, "not node-link JSON: expected %s, found %s", what, cut(fmt.Sprint(t)))
	}
	return err
}

func (r *nodeLink) field(key string) error {
	switch key {
	case "nodes":
		return r.list("a list of nodes", r.readNode)
	case "links", "edges":
		if r.links != "" {
			return mistake(r.line(), "both %s and %s; expected one list of links", r.links, key)
		}
		r.links = key
		return r.list("a list of links", r.readLink)
	case "directed":
		return r.in.Decode(&r.directed)
	case "graph":
		var graph any // a list of pairs in old files
		err := r.in.Decode(&graph)
		if object, ok := graph.(map[string]any); ok {
			r.graph.Name, _ = object["name"].(string)
		}
		return err
	}
	var skipped json.RawMessage
	return r.in.Decode(&skipped)
}

func (r *nodeLink) list(what string, read func(object map[string]any, line int) error) error {
	if err := r.open('[', what); err != nil {
		return err
	}
	for r.in.More() {
		line, object := r.begin(), map[string]any{}
		if err := r.in.Decode(&object); err != nil {
			var bad *json.UnmarshalTypeError
			if errors.As(err, &bad) {
				return mistake(line, "expected an object in %s, found %s", what, bad.Value)
			}
			return err
		}
		if err := read(object, line); err != nil {
			return err
		}
	}
	_, err := r.in.Token()
	return err
}

func (r *nodeLink) readNode(object map[string]any, line int) error {
	id, ok := identity(object["id"])
	if !ok {
		return mistake(line, "a node without an id that is text, a number or a list of them")
	}
	if _, err := strconv.Atoi(id); err != nil {
		r.named[id] = true
	}
	return r.node(id, attributesOf(object, line), line)
}

func (r *nodeLink) readLink(object map[string]any, line int) error {
	from, ok1 := identity(object["source"])
	to, ok2 := identity(object["target"])
	if !ok1 || !ok2 {
		return mistake(line, "a link without source or target that is text, a number or a list of them")
	}
	return r.edge(edge{from, to, attributesOf(object, line), line})
}

// byNumber replaces numbers of nodes by their ids, in a file whose ids are no numbers.
func (r *nodeLink) byNumber() {
	if len(r.named) < len(r.graph.Nodes) {
		return
	}
	ids := make([]string, len(r.graph.Nodes))
	for id, n := range r.index {
		ids[n] = id
	}
	for i := range r.edges {
		for _, end := range []*string{&r.edges[i].from, &r.edges[i].to} {
			if n, err := strconv.Atoi(*end); err == nil && n >= 0 && n < len(ids) {
				*end = ids[n]
			}
		}
	}
}

// scalar gives the text of a string or a number.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// identity gives the text of a node's id: of a tuple of Python's, which JSON has as a list, what Python writes. The nodes
// of networkx's grids are such.
func identity(v any) (string, bool) {
	list, ok := v.([]any)
	if !ok {
		return scalar(v)
	}
	words := make([]string, len(list))
	for i, one := range list {
		if words[i], ok = identity(one); !ok {
			return "", false
		}
	}
	return "(" + strings.Join(words, ", ") + ")", len(words) > 0
}

// attributesOf are the texts and numbers of an object, in the order of their keys.
func attributesOf(object map[string]any, line int) (all []attribute) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if text, ok := scalar(object[key]); ok {
			all = append(all, attribute{key, text, line})
		}
	}
	return all
}
