package topo

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// MaxFile bounds a file, unpacked, in bytes.
const MaxFile = 64 << 20

// formats are what Read knows: what files of the format are called, how one begins, and what reads it.
var formats = []struct {
	name   string
	suffix []string
	begins string // one of these, after blanks
	read   func([]byte) (*Graph, error)
}{
	{"GraphML", []string{".graphml", ".xml"}, "<", readGraphML},
	{"node-link JSON", []string{".json"}, "{", readNodeLink},
	{"CAIDA AS relationships", []string{".as-rel", ".as-rel2", ".txt"}, "0123456789", readRelations},
	{"GML", []string{".gml"}, "", readGML},
}

// Read reads a graph of any format, packed with gzip or bzip2 or not. What a file is follows from its
// name, or where that says nothing from how it begins. The name is for messages too, which are of type
// [Error].
func Read(name string, text []byte) (*Graph, error) {
	text, err := unpack(text)
	if err != nil {
		return nil, &Error{File: name, Text: err.Error()}
	}
	g, err := formatOf(name, text)(bytes.TrimPrefix(text, []byte("\ufeff")))
	var e *Error
	if errors.As(err, &e) {
		e.File = name
	}
	return g, err
}

func formatOf(name string, text []byte) func([]byte) (*Graph, error) {
	name = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".bz2"))
	for _, f := range formats {
		for _, suffix := range f.suffix {
			if strings.HasSuffix(path.Base(name), suffix) {
				return f.read
			}
		}
	}
	first := firstByte(text)
	for _, f := range formats {
		if strings.IndexByte(f.begins, first) >= 0 {
			return f.read
		}
	}
	return readGML
}

// firstByte is the first that is neither blank nor part of a comment line; 0 where there is none.
func firstByte(text []byte) byte {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff"))); len(line) > 0 && line[0] != '#' {
			return line[0]
		}
	}
	return 0
}

// unpack undoes gzip and bzip2, which their first bytes tell.
func unpack(text []byte) ([]byte, error) {
	var r io.Reader = bytes.NewReader(text)
	switch {
	case bytes.HasPrefix(text, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		r = z
	case bytes.HasPrefix(text, []byte("BZh")):
		r = bzip2.NewReader(r)
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("unpack: %w", err)
	case len(text) > MaxFile:
		return nil, fmt.Errorf("more than %d MB; expected a smaller graph", MaxFile>>20)
	}
	return text, nil
}
