package topo

import "fmt"

// An Error says what is wrong with a file, and where.
type Error struct {
	File string
	Line int // from 1; 0 where no line is to blame
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// mistake is an Error without its file, which Read adds.
func mistake(line int, format string, args ...any) error {
	return &Error{Line: line, Text: fmt.Sprintf(format, args...)}
}

// cut shortens a word of a file for a message.
func cut(s string) string {
	const most = 40
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return s
}
