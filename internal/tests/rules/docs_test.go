package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli/exit"
)

// files calls do with the name and text of every file of the tree whose name ends in one of suffixes.
func files(t *testing.T, suffixes []string, do func(name, text string)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && slices.Contains([]string{".git", "bin"}, d.Name()) {
				return filepath.SkipDir
			}
			return err
		}
		if !slices.Contains(suffixes, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(top, path)
		do(name, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	heading = regexp.MustCompile(`(?m)^#+ ([0-9]+(?:\.[0-9]+)*)\.? `)
	cited   = regexp.MustCompile(`docs/protocol\.md §([0-9]+(?:\.[0-9]+)*)`)
	link    = regexp.MustCompile(`\]\(([^)#: ]+)(?:#[^)]*)?\)`)
)

func TestCitedSectionsExist(t *testing.T) {
	have := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(read(t, "docs/protocol.md"), -1) {
		have[m[1]] = true
	}
	files(t, []string{".go", ".c", ".h", ".proto", ".md"}, func(name, text string) {
		for _, m := range cited.FindAllStringSubmatch(text, -1) {
			if !have[m[1]] {
				t.Errorf("%s cites docs/protocol.md §%s, which does not exist", name, m[1])
			}
		}
	})
}

func TestLinksInDocumentsLead(t *testing.T) {
	files(t, []string{".md"}, func(name, text string) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root(t), filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", name, m[1])
			}
		}
	})
}

func TestExitCodesInTheManualAreThoseOfTheProgram(t *testing.T) {
	manual := read(t, "docs/operate.md")
	for code := exit.OK; code <= exit.Warned; code++ {
		if row := regexp.MustCompile(`(?m)^\| ` + string(rune('0'+code)) + ` \|`); !row.MatchString(manual) {
			t.Errorf("docs/operate.md: no row for exit code %d", code)
		}
	}
}

var placeholders = regexp.MustCompile(`\b(TODO|FIXME|XXX|TBD)\b`)

func TestNothingIsLeftForLater(t *testing.T) {
	files(t, []string{".go", ".c", ".h", ".proto", ".md", ".yaml", ".sh"}, func(name, text string) {
		if where := placeholders.FindStringIndex(text); where != nil && !strings.HasPrefix(name, "internal/tests/rules/") {
			t.Errorf("%s:%d: %s", name, 1+strings.Count(text[:where[0]], "\n"), text[where[0]:where[1]])
		}
	})
}

var eventKind = regexp.MustCompile(`"((?:controller|store|host|gateway|instance|service|router|link|switch|module)\.[a-z]+)"`)

func TestEventKindsAreInTheManual(t *testing.T) {
	manual := read(t, "docs/operate.md")
	files(t, []string{".go"}, func(name, text string) {
		if !strings.HasPrefix(name, "internal/controller/controld/") && !strings.HasPrefix(name, "internal/openflow/switchd/") || strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, m := range eventKind.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(manual, "`"+m[1]+"`") {
				t.Errorf("%s: docs/operate.md does not list the event %s", name, m[1])
			}
		}
	})
}
