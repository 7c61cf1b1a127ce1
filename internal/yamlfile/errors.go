package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Errors are all that is wrong with files, in the order of their lines.
type Errors []LineError

// A LineError says where a file is wrong and what was expected there.
type LineError struct {
	Path   string
	Line   int
	Column int // from 1 on; 0: the line says enough
	Text   string
}

func (e LineError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Column, e.Text)
}

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted is nil where nothing is wrong, so that it may be returned as an error.
func (e Errors) Sorted() error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b LineError) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(e)
}
