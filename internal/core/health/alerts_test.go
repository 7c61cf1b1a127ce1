package health

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/monitoring"
)

// Each kind is told by an alert, and is in the manual's list.
func TestEachKindHasAnAlertAndIsInTheManual(t *testing.T) {
	var patterns []*regexp.Regexp
	for _, m := range regexp.MustCompile(`_problems[^\n]*kind=~?"([^"]+)"`).FindAllStringSubmatch(string(monitoring.Alerts), -1) {
		patterns = append(patterns, regexp.MustCompile("^("+strings.ReplaceAll(m[1], `\\`, `\`)+")$"))
	}
	manual, err := os.ReadFile("../../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds {
		if !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(string(k)) }) {
			t.Errorf("no alert tells of %s", k)
		}
		if !strings.Contains(string(manual), "`"+string(k)+"`") {
			t.Errorf("docs/operate.md does not list `%s`", k)
		}
	}
}
