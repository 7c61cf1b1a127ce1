package settings

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/yamlfile"
)

// blame says where the value stands that a daemon refused after all flags were read: the daemon knows
// its flags, not the file. Other errors stay as they are.
func (f *File) blame(err error) error {
	var known *exit.Error
	if f.Path == "" || !errors.As(err, &known) || known.Code != exit.Usage {
		return err
	}
	line := f.culprit(err.Error())
	if line == 0 {
		return err
	}
	return &exit.Error{Code: known.Code, Hint: known.Hint, Err: yamlfile.LineError{Path: f.Path, Line: line, Text: err.Error()}}
}

// culprit is the line that a message speaks of: of a key that stands there as a word with one of its
// values, else of a key that begins the message; 0 for none.
func (f *File) culprit(message string) int {
	for _, e := range f.used {
		for _, v := range e.values {
			if hasWord(message, e.key) && strings.Contains(message, v.text) {
				return v.line
			}
		}
	}
	for _, e := range f.used {
		if strings.HasPrefix(strings.TrimPrefix(message, "--"), e.key+":") {
			return e.line
		}
	}
	return 0
}

func hasWord(text, word string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return slices.ContainsFunc(words, func(w string) bool { return strings.TrimPrefix(w, "--") == word })
}
