package rules

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/rules/metaphors"
)

// allowedWords are where a word has to stay.
var allowedWords = map[string][]string{
	"internal/api/former.go": {"Biography"}, // what the version before calls by
}

func TestCodeUsesTheFieldsTerms(t *testing.T) {
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", root(t), "ls-files", "*.go", "*.c", "*.h", "*.proto").Output()
	if err != nil {
		nstest.Lacks(t, "no git here: this tree is an archive")
	}
	for _, file := range strings.Fields(string(out)) {
		if metaphors.Exempt(file) {
			continue
		}
		for _, u := range metaphors.In(read(t, file)) {
			if !slices.Contains(allowedWords[file], u.Word) {
				t.Errorf("%s:%d: %q is a metaphor: the field's term is %q (docs/glossary.md)", file, u.Line, u.Word, u.Term)
			}
		}
	}
}
