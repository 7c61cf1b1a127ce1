package rules

import (
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

var (
	// ofSafety are the names of tests that promise what no second try may excuse (internal/tests/safety).
	ofSafety = regexp.MustCompile(`Leaves?No|LosesNo(thing|Byte)|NothingIsLost|ForgetsNo(thing|Service)|ByteForByte|VeryByte|NothingIsOdd|TogetherOrNotAtAll|LookedAtOrNotAtAll|Attackers(Change|Beside)|Forge(rs|ries)Change|NeedsTheSecret|HasTheSecret|CannotPose|AndStaysOut|IsNeverOpened|OrdersInAnother`)
	testHead = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\) \{\n?\s*(.*)$`)
)

// A test whose name is a promise of safety is marked as one, in its first line.
func TestPromisesOfSafetyAreMarked(t *testing.T) {
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", root(t), "ls-files", "*_test.go").Output()
	if err != nil {
		nstest.Lacks(t, "no git here: this tree is an archive")
	}
	seen := 0
	for file := range strings.FieldsSeq(string(out)) {
		for _, m := range testHead.FindAllStringSubmatch(read(t, file), -1) {
			if !ofSafety.MatchString(m[1]) {
				continue
			}
			if seen++; !strings.Contains(m[2], "safety.Test(t, safety.") {
				t.Errorf("%s: %s does not begin with safety.Test(t, …)", file, m[1])
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d tests of safety: does this test still see them?", seen)
	}
}

// A package with property tests draws the same each time in make test.
func TestPropertyTestsHaveASeed(t *testing.T) {
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", root(t), "grep", "-l", "pgregory.net/rapid\"$", "--", "*_test.go").Output()
	if err != nil {
		nstest.Lacks(t, "no git here: this tree is an archive")
	}
	seeded, drawn := map[string]bool{}, map[string]bool{}
	for file := range strings.FieldsSeq(string(out)) {
		drawn[path.Dir(file)] = true
		seeded[path.Dir(file)] = seeded[path.Dir(file)] || strings.Contains(read(t, file), `"scaffold.dev/scaffold/internal/tests/seed"`)
	}
	for dir := range drawn {
		if !seeded[dir] {
			t.Errorf("%s has property tests: import internal/tests/seed beside rapid", dir)
		}
	}
}
