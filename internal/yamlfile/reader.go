package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// A Node is a piece of a file.
type Node = yaml.Node

// A Reader reads one file and collects what is wrong with it.
type Reader struct {
	Path    string
	Columns bool // errors tell columns, too
	Errs    Errors
}

// Errorf notes a mistake. Column 0 is for the line.
func (r *Reader) Errorf(line, column int, format string, args ...any) {
	if !r.Columns {
		column = 0
	}
	r.Errs = append(r.Errs, LineError{r.Path, line, column, fmt.Sprintf(format, args...)})
}

// At notes a mistake at a node.
func (r *Reader) At(n *Node, format string, args ...any) { r.Errorf(n.Line, n.Column, format, args...) }

// Err is nil for a good file.
func (r *Reader) Err() error { return r.Errs.Sorted() }

// yamlLine is how the YAML parser names lines in its messages.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parserSays are messages of the second of the parser's two stages, which counts lines from 0.
var parserSays = regexp.MustCompile(`did not find expected (',' or '[\]}]'|key$|'-' indicator|node content|<document start>)`)

func (r *Reader) notYAML(text []byte, err error) {
	lines := bytes.Count(bytes.TrimRight(text, "\n"), []byte("\n")) + 1
	line, at := 1, yamlLine.FindStringSubmatch(err.Error())
	if len(at) == 2 && at[1] != "" {
		line, _ = strconv.Atoi(at[1])
	}
	if parserSays.MatchString(err.Error()) && line < lines {
		line++
	}
	r.Errorf(line, 0, "not YAML: %s", yamlLine.ReplaceAllString(err.Error(), ""))
}

// Tree parses the text, which is to be one document; nil if that failed. what is expected is told where there
// is nothing.
func (r *Reader) Tree(text []byte, what string) *Node {
	var doc Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		r.notYAML(text, err)
		return nil
	}
	if len(doc.Content) == 0 {
		r.Errorf(1, 0, "the file is empty; expected %s", what)
		return nil
	}
	return doc.Content[0]
}

// Trees parses all documents of the text but empty ones.
func (r *Reader) Trees(text []byte) (all []*Node) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc Node
		switch err := decoder.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			r.notYAML(text, err)
			return all
		case len(doc.Content) > 0 && doc.Content[0].Tag != "!!null":
			all = append(all, doc.Content[0])
		}
	}
}
