package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/operate/doctor"
)

// exitLine begins the last line of a suite's output.
const exitLine = "kernels: exit code "

// A result is what one kernel's boot has shown.
type result struct {
	release  string
	features []doctor.Finding
	suites   []tally
	took     time.Duration
}

// A tally counts what the tests of a package said.
type tally struct {
	name            string
	passed, skipped int
	failed          []string
	broken          string // why the package did not end as it should, empty if it did
	cut             string // the test that ran when the time was over, empty if all were through
}

// ok says whether nothing speaks against the kernel. Tests for which there was no time do not.
func (t tally) ok() bool { return t.failed == nil && t.broken == "" && (t.passed > 0 || t.cut != "") }

func (t tally) String() string {
	text := fmt.Sprintf("%d passed", t.passed)
	if t.skipped > 0 {
		text += fmt.Sprintf(", %d left out", t.skipped)
	}
	if t.failed != nil {
		text = "**" + fmt.Sprintf("%d failed", len(t.failed)) + "**, " + text
	}
	if t.broken != "" {
		text = "**" + t.broken + "**, " + text
	}
	if t.cut != "" {
		text += "; then " + errTime.Error()
	}
	return text
}

// collect reads what the suites left in dir. Those that were not begun have left nothing.
func collect(k kernel, suites []suite, dir string) (result, error) {
	r := result{release: k.release}
	for _, s := range suites {
		text, err := os.ReadFile(s.file(dir))
		if errors.Is(err, fs.ErrNotExist) && len(r.features) > 0 {
			continue
		}
		if err != nil {
			return r, fmt.Errorf("%w; the console said last:\n%s", err, tail(dir))
		}
		if s.Name != doctorSuite {
			r.suites = append(r.suites, count(s.Name, string(text)))
			continue
		}
		var report doctor.Report
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&report); err != nil {
			return r, fmt.Errorf("scaffold doctor said on %s: %q: %w", k.release, text, err)
		}
		for _, f := range report.Findings {
			if f.Area == "kernel" && f.Name != "release" && f.Name != "cgroup v2" {
				r.features = append(r.features, f)
			}
		}
	}
	return r, nil
}

var (
	verdictLine = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\S+)`)
	beginLine   = regexp.MustCompile(`(?m)^=== RUN +(\S+)`)
)

// count reads the output of a test program.
func count(name, text string) tally {
	t := tally{name: name}
	for _, m := range verdictLine.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "PASS":
			t.passed++
		case "SKIP":
			t.skipped++
		case "FAIL":
			t.failed = append(t.failed, m[2])
		}
	}
	_, panicked, _ := strings.Cut(text, "\npanic: ")
	switch {
	case strings.HasPrefix(panicked, "test timed out after "), !strings.Contains(text, exitLine):
		t.cut = "its start"
		if begun := beginLine.FindAllStringSubmatch(text, -1); begun != nil {
			t.cut = begun[len(begun)-1][1]
		}
	case panicked != "":
		t.broken, _, _ = strings.Cut("panic: "+panicked, "\n")
	case t.failed == nil && !strings.HasSuffix(text, exitLine+"0\n"):
		t.broken = "it did not end as it should"
	}
	return t
}

// text is what one reads while other kernels run.
func (r result) text() string {
	var b strings.Builder
	for _, f := range r.features {
		if f.State != doctor.Good {
			fmt.Fprintf(&b, "   without %s\n", f.Name)
		}
	}
	for _, t := range r.suites {
		fmt.Fprintf(&b, "   %-24s %s\n", t.name, strings.ReplaceAll(t.String(), "**", ""))
		for _, f := range t.failed {
			fmt.Fprintf(&b, "      failed: %s\n", f)
		}
		if t.cut != "" {
			fmt.Fprintf(&b, "      cut off in %s\n", t.cut)
		}
	}
	fmt.Fprintf(&b, "   in %v\n", r.took.Round(time.Second))
	return b.String()
}

// runs says whether the kernel has all that is needed.
func (r result) runs() bool {
	for _, f := range r.features {
		if f.State == doctor.Missing {
			return false
		}
	}
	return len(r.features) > 0
}

// verdict fails where a kernel that has what is needed does not pass; where machines are quick enough for all tests,
// also where the time was over before: a test hangs.
func verdict(results []result, quick bool) error {
	var errs []error
	for _, r := range results {
		for _, t := range r.suites {
			if r.runs() && (!t.ok() || quick && t.cut != "") {
				errs = append(errs, fmt.Errorf("%s: %s: %s %s", r.release, t.name, strings.ReplaceAll(t.String(), "**", ""), strings.Join(t.failed, ", ")))
			}
		}
	}
	if errs != nil {
		errs = append(errs, errors.New("hint: -keep keeps what the tests wrote, -only PACKAGE runs one"))
	}
	return errors.Join(errs...)
}
