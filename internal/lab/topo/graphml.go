package topo

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

// GraphML as yEd, networkx and the Internet Topology Zoo write it (http://graphml.graphdrawing.org):
// keys give names to the data of nodes and edges. Nested graphs, hyperedges and ports are refused.
type graphML struct {
	*builder
	in   *xml.Decoder
	keys map[string]graphMLKey
	seen bool // a graph
}

type graphMLKey struct {
	name, domain string
	value        *string // what a node or edge has that says nothing
}

func readGraphML(text []byte) (*Graph, error) {
	r := &graphML{builder: newBuilder(), in: xml.NewDecoder(bytes.NewReader(text)), keys: map[string]graphMLKey{}}
	r.in.CharsetReader = charset
	root, err := r.next()
	switch {
	case err == nil && root == nil:
		err = mistake(1, "not GraphML: expected <graphml>, found no element")
	case err == nil && root.Name.Local != "graphml":
		err = mistake(r.line(), "not GraphML: expected <graphml>, found <%s>", cut(root.Name.Local))
	case err == nil:
		err = r.each(map[string]func(xml.StartElement) error{"key": r.key, "graph": r.network})
	}
	if err != nil {
		return nil, err
	}
	if !r.seen {
		return nil, mistake(r.line(), "no <graph> in <graphml>")
	}
	return r.finish()
}

// charset reads the encodings that old files have beside UTF-8.
func charset(label string, in io.Reader) (io.Reader, error) {
	switch strings.ToLower(label) {
	case "us-ascii", "ascii":
		return in, nil
	case "iso-8859-1", "latin1":
		return charmap.ISO8859_1.NewDecoder().Reader(in), nil
	case "windows-1252":
		return charmap.Windows1252.NewDecoder().Reader(in), nil
	}
	return nil, fmt.Errorf("encoding %q; expected UTF-8", cut(label))
}

func (r *graphML) line() int {
	line, _ := r.in.InputPos()
	return line
}

// token reads what comes next; nil at the end.
func (r *graphML) token() (xml.Token, error) {
	t, err := r.in.Token()
	var bad *xml.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case errors.As(err, &bad):
		return nil, mistake(bad.Line, "not XML: %s", bad.Msg)
	case err != nil:
		return nil, mistake(r.line(), "not XML: %v", err)
	}
	return t, nil
}

// next finds the next element inside the present one; nil where that ends.
func (r *graphML) next() (*xml.StartElement, error) {
	for {
		t, err := r.token()
		if t == nil || err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			return &t, nil
		case xml.EndElement:
			return nil, nil
		}
	}
}

// each calls what reads the elements inside the present one; others are skipped.
func (r *graphML) each(known map[string]func(xml.StartElement) error) error {
	for {
		e, err := r.next()
		if e == nil || err != nil {
			return err
		}
		read := known[e.Name.Local]
		if read == nil {
			read = r.skip
		}
		if err := read(*e); err != nil {
			return err
		}
	}
}

func (r *graphML) skip(xml.StartElement) error {
	for depth := 1; depth > 0; {
		t, err := r.token()
		if t == nil || err != nil {
			return err
		}
		switch t.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	return nil
}

// text is all text inside the present element.
func (r *graphML) text() (string, error) {
	var text strings.Builder
	for depth := 1; depth > 0; {
		t, err := r.token()
		if t == nil || err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		case xml.CharData:
			text.Write(t)
		}
	}
	return strings.TrimSpace(text.String()), nil
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
