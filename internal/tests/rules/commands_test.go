package rules

import (
	"regexp"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/documented"

	"scaffold.dev/scaffold/internal/cli"
)

var target = regexp.MustCompile(`(?m)^([a-z-]+):`)

func TestDocumentedCommandsExist(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	seen := 0
	files(t, []string{".md"}, func(name, text string) {
		for _, line := range documented.ShellLines(text) {
			for _, w := range documented.Words(line) {
				if args := documented.Program(w, "make"); len(args) > 0 && !strings.ContainsAny(args[0], "=-") && !targets[args[0]] {
					t.Errorf("%s: %q: the Makefile has no target %s", name, line, args[0])
				}
			}
		}
		documented.Each(text, func(line string, words []string, whole bool) {
			if whole {
				seen++
			}
			complain(t, name, line, documented.Try(cli.New(), words, whole))
		})
	})
	if seen < 100 {
		t.Errorf("%d commands were found in documents: does this test still know how they are written?", seen)
	}
}

// What alerts tell people to do.
func TestCommandsOfAlertsExist(t *testing.T) {
	for _, m := range regexp.MustCompile(`scaffold ([a-z]+(?: [a-z]+)?)`).FindAllStringSubmatch(read(t, "monitoring/alerts.yaml"), -1) {
		complain(t, "monitoring/alerts.yaml", m[0], documented.Try(cli.New(), strings.Fields(m[1]), false))
	}
}

// A command's --help has examples of it, which people copy.
func TestExamplesOfCommandsAreCommands(t *testing.T) {
	documented.Examples(cli.New(), func(words []string) string { return documented.Try(cli.New(), words, true) }, func(path, line, why string) {
		t.Errorf("%s --help: %q: %s", path, line, why)
	})
}

func complain(t *testing.T, where, what, complaint string) {
	t.Helper()
	if complaint != "" {
		t.Errorf("%s: %q: %s", where, what, complaint)
	}
}
