package rules

import (
	"regexp"
	"strings"
	"testing"
)

var (
	named    = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	declared = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(t \*testing\.T\)`)
)

// The attackers that docs/protocol.md §7 answers for.
var attackers = []string{
	"an attacker on the link", "an attacker off path", "an outsider at the port of a controller's part of the state", "an outsider at the port of an agent of boost", "an agent of boost", "a local user", "a member host", "a member router", "a switch",
	"an administrator", "a controller that was broken into", "one controller of three",
}

// TestEachAttackersLineNamesATest: what §7 says that an attacker can and cannot do is held by a test.
func TestEachAttackersLineNamesATest(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/protocol.md"), "\n## 7.")
	section, _, _ = strings.Cut(section, "\n### 7.2")
	for _, who := range attackers {
		rows := 0
		for row := range strings.Lines(section) {
			if strings.HasPrefix(row, "| "+who) {
				rows++
				if !named.MatchString(row) {
					t.Errorf("docs/protocol.md §7: no test is named in the line: %s", row)
				}
			}
		}
		if rows == 0 {
			t.Errorf("docs/protocol.md §7 has no line for %q", who)
		}
	}
}

// TestTestsThatDocumentsNameExist: a promise whose test was renamed or removed is found.
func TestTestsThatDocumentsNameExist(t *testing.T) {
	have := map[string]bool{}
	files(t, []string{".go"}, func(name, text string) {
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			have[m[1]] = true
		}
	})
	files(t, []string{".md"}, func(name, text string) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !have[m[1]] {
				t.Errorf("%s names %s, which no file has", name, m[1])
			}
		}
	})
}
