package topo

import (
	"cmp"
	"html"
	"strings"
	"unicode/utf8"
)

// GML is a list of keys and values; a value is a number, a string or such a list (M. Himsolt: GML, a
// portable graph file format, 1997). Lines that begin with # are comments.

// maxDepth bounds lists in lists; graphs have three.
const maxDepth = 32

// A gmlPair is a key with its value: text, or a list where list is not nil.
type gmlPair struct {
	key  string
	text string
	list []gmlPair
	line int
}

// A gmlScanner takes GML apart.
type gmlScanner struct {
	text []byte
	at   int
	line int
}

// blank skips blanks and comments.
func (s *gmlScanner) blank() {
	for fresh := s.at == 0; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\n':
			s.line++
			fresh = true
		case c == '#' && (fresh || s.at == 0 || s.text[s.at-1] == '\n'):
			for s.at+1 < len(s.text) && s.text[s.at+1] != '\n' {
				s.at++
			}
		case c != ' ' && c != '\t' && c != '\r':
			return
		}
	}
}

// word reads up to a blank, a bracket or a quote.
func (s *gmlScanner) word() string {
	from := s.at
	for s.at < len(s.text) && !strings.ContainsRune(" \t\r\n[]\"", rune(s.text[s.at])) {
		s.at++
	}
	return string(s.text[from:s.at])
}

// quoted reads a string, which begins at the present quote and may have lines and &entities;.
func (s *gmlScanner) quoted() (string, error) {
	from, line := s.at+1, s.line
	for s.at = from; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\n':
			s.line++
		case '"':
			s.at++
			return html.UnescapeString(latin(s.text[from : s.at-1])), nil
		}
	}
	return "", mistake(line, "a string that does not end; expected a closing quote")
}

// latin takes text that is not UTF-8 for ISO 8859-1, which the format had before Unicode.
func latin(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	runes := make([]rune, len(text))
	for i, b := range text {
		runes[i] = rune(b)
	}
	return string(runes)
}

// list reads pairs up to the bracket that closes the list, or at depth 0 to the end.
func (s *gmlScanner) list(depth int) (pairs []gmlPair, err error) {
	for {
		s.blank()
		switch {
		case s.at == len(s.text) && depth > 0:
			return nil, mistake(s.line, "a list that does not end; expected ]")
		case s.at == len(s.text):
			return pairs, nil
		case s.text[s.at] == ']' && depth > 0:
			s.at++
			return pairs, nil
		}
		p, err := s.pair(depth)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
}

func (s *gmlScanner) pair(depth int) (p gmlPair, err error) {
	p.line, p.key = s.line, s.word()
	if !isKey(p.key) {
		return p, mistake(s.line, "not GML: expected a key, found %q", cut(cmp.Or(p.key, string(s.text[s.at:min(s.at+1, len(s.text))]))))
	}
	s.blank()
	switch {
	case s.at == len(s.text) || s.text[s.at] == ']':
		err = mistake(s.line, "key %q has no value", cut(p.key))
	case s.text[s.at] == '[' && depth == maxDepth:
		err = mistake(s.line, "lists in lists, more than %d deep", maxDepth)
	case s.text[s.at] == '[':
		s.at++
		p.list, err = s.list(depth + 1)
		p.list = append([]gmlPair{}, p.list...) // an empty list is one too
	case s.text[s.at] == '"':
		p.text, err = s.quoted()
	default:
		p.text = s.word()
	}
	return p, err
}

// isKey reports whether a word may be a key: letters, digits and what some programs add, after a letter.
func isKey(word string) bool {
	for i, c := range word {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789.-", c)) {
			return false
		}
	}
	return word != ""
}
