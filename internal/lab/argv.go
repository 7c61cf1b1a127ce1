package lab

import (
	"errors"
	"fmt"
	"strings"
)

// SplitArgv splits a command line as a shell does, with single and double quotes and backslashes and
// nothing else: no variables, no globs, no pipes.
func SplitArgv(line string) ([]string, error) {
	var argv []string
	var word strings.Builder
	open, quote := false, rune(0)
	escaped := false
	for _, c := range line {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, open = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, open = c, true
		case strings.ContainsRune(" \t\r\n", c):
			if open {
				argv = append(argv, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
			open = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("a quote or backslash at the end of %q is not closed", line)
	}
	if open {
		argv = append(argv, word.String())
	}
	if len(argv) == 0 {
		return nil, errors.New("the command is empty")
	}
	return argv, nil
}
