package file

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
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
			switch {
			case c == '\n': // a line that goes on
			case quote == '"' && !strings.ContainsRune("$`\"\\", c): // it stands for itself: POSIX, Shell Command Language, 2.2.3
				word.WriteString(`\` + string(c))
			default:
				word.WriteRune(c)
			}
			open = open || c != '\n'
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
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

// joinArgv writes a command line as SplitArgv reads it.
func joinArgv(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		if words[i] = word; word == "" || strings.ContainsFunc(word, special) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// special are the characters that SplitArgv reads something into, or that do not stand at the ends of an action: all
// white space is taken off there.
func special(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune(`\'"`, c) }
