package lab

import (
	"fmt"
	"regexp"
	"strings"
)

// variable is ${name} or ${addr:service}; a lone $ stays as it is, for nginx and the shell.
var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// checkVariables says which variable of text nobody knows.
func checkVariables(text string, services func(string) bool) error {
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		name, isAddr := strings.CutPrefix(m[1], "addr:")
		switch {
		case isAddr && !services(name):
			return fmt.Errorf("${addr:%s}: no service of that name in services", name)
		case !isAddr && m[1] != "dir" && m[1] != "node" && m[1] != "lab":
			return fmt.Errorf("unknown variable ${%s}; expected ${dir}, ${node}, ${lab} or ${addr:SERVICE}", m[1])
		}
	}
	return nil
}

// substitute replaces the variables; value knows them all.
func substitute(text string, value func(name string) string) string {
	return variable.ReplaceAllStringFunc(text, func(m string) string { return value(m[2 : len(m)-1]) })
}
