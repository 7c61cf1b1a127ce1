package programs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources is the text of the tests of this package but this one, that of outsiders (docs/gateway.md), and those of moves, whose table is checked
// by themselves.
func sources(t *testing.T) (text string) {
	t.Helper()
	names, _ := filepath.Glob("*_test.go")
	for _, name := range slices.DeleteFunc(names, func(n string) bool {
		return n == "table_test.go" || n == "gateway_test.go" || strings.HasPrefix(n, "move_")
	}) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	return text
}

func all(pattern, text string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return found
}

func TestTheTableListsWhatIsTested(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/programs.md")
	if err != nil {
		t.Fatal(err)
	}
	source := sources(t)
	tested := all(`(?m)^func (Test[A-Z]\w*)\(t \*testing.T\)`, source)
	listed := all("(?m)\\| `(Test\\w+)` \\|$", string(doc))
	if !slices.Equal(tested, listed) {
		t.Errorf("docs/programs.md lists\n%v\ntested are\n%v", listed, tested)
	}
	for _, row := range all("(?m)^\\|(.*\\| `Test\\w+`) \\|$", string(doc)) {
		cells := strings.Split(row, "|")
		for _, program := range all("`([^`]+)`", cells[1]+cells[2]) {
			if !regexp.MustCompile(`"(/usr/sbin/)?` + program + `"`).MatchString(source) {
				t.Errorf("docs/programs.md: no test starts %s, which is in the row of %s", program, strings.TrimSpace(cells[0]))
			}
		}
		if lines := strings.TrimSpace(cells[6]); lines != "0" {
			t.Errorf("docs/programs.md: %s changed %s lines, nothing here changes any", strings.TrimSpace(cells[0]), lines)
		}
	}
}
