package file

import (
	"fmt"
	"regexp"
	"strings"
)

// variable is ${name} or ${addr:service}; a lone $ stays as it is, for nginx and the shell.
var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// Variables are the names of those in a text, in their order.
func Variables(text string) (names []string) {
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// checkVariables says which variable of text nobody knows.
func checkVariables(text string, services func(string) bool) error {
	for _, v := range Variables(text) {
		name, isAddr := strings.CutPrefix(v, "addr:")
		switch {
		case isAddr && !services(name):
			return fmt.Errorf("${addr:%s}: no service of that name in services", name)
		case !isAddr && v != "dir" && v != "node" && v != "lab":
			return fmt.Errorf("unknown variable ${%s}; expected ${dir}, ${node}, ${lab} or ${addr:SERVICE}", v)
		}
	}
	return nil
}

// Substitute replaces the variables; value knows them all.
func Substitute(text string, value func(name string) string) string {
	return variable.ReplaceAllStringFunc(text, func(m string) string { return value(m[2 : len(m)-1]) })
}
