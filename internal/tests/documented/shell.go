// Package documented reads the command lines that documents and examples show, so that tests hold each to a program's
// commands: scaffold's own, and those of programs that it finds beside itself.
package documented

import (
	"regexp"
	"slices"
	"strings"
)

var fence = regexp.MustCompile("(?ms)^ *```(?:sh|console|bash|shell)\n(.*?)^ *```")

// ShellLines returns the lines of the shell blocks of a document; one that ends with a backslash goes on in the next.
func ShellLines(text string) (lines []string) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(strings.ReplaceAll(m[1], "\\\n", " ")) {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		}
	}
	return lines
}

// Words takes a line of shell apart into commands and their words, as far as documents need it: quotes count,
// comments and redirections go, what is substituted is a command of its own.
func Words(line string) (commands [][]string) {
	var now []string
	word, quoted, quote := "", false, rune(0)
	end := func() {
		if word != "" || quoted {
			now = append(now, word)
		}
		word, quoted = "", false
	}
	next := func() {
		end()
		if cut := slices.IndexFunc(now, func(w string) bool { return strings.Trim(w, "0123456789") == ">" || w == ">>" || w == "<" }); cut >= 0 {
			now = now[:cut]
		}
		commands = append(commands, now)
		now = nil
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word += string(c)
		case c == '\'' || c == '"':
			quote, quoted = c, true
		case c == '#' && word == "" && !quoted:
			next()
			return commands
		case c == '(' && strings.HasSuffix(word, "$"):
			word = strings.TrimSuffix(word, "$") + "X"
			next()
		case strings.ContainsRune("|&;()", c):
			next()
		case c == ' ' || c == '\t':
			end()
		default:
			word += string(c)
		}
	}
	next()
	return commands
}

// Program finds the words behind a program's name, also where others go before it, as sudo does.
func Program(words []string, names ...string) []string {
	at := slices.IndexFunc(words, func(w string) bool { return slices.Contains(names, w) })
	if at < 0 {
		return nil
	}
	return words[at+1:]
}
