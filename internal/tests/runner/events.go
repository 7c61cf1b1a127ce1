package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/tests/safety"
)

// An event is a line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output, Key, Value, FailedBuild string
	Elapsed                                                            float64 // seconds
}

// A name is a test of a package: one that go test can be asked for, not a part of one (t.Run).
type name struct{ pkg, test string }

func (n name) String() string { return n.pkg + "." + n.test }

// A result is what became of a test, with its parts.
type result struct {
	name
	passed, failed bool
	safety         string // of which promise the test is, "" for none
	said           []string
}

// A unit is a package whose tests ran.
type unit struct {
	failed bool
	raced  bool                // the detector found something: test2json may give that to another test than whose it is
	said   []string            // beside its tests: a trace of a crash, what TestMain or the compiler said
	open   map[string]struct{} // tests and parts that began and did not end
	ended  bool                // package testing has said its last word, PASS or FAIL: all tests were run
	after  bool                // something was said after that: TestMain found what no test did
}

// An outcome is what a run of go test came to.
type outcome struct {
	passed, failed, skipped int // tests and their parts
	skips                   []string
	tests                   map[name]*result
	units                   map[string]*unit
}

func newOutcome() *outcome {
	return &outcome{tests: map[name]*result{}, units: map[string]*unit{}}
}

// read takes the events of a run. A line that is no event is what the toolchain itself said.
func (o *outcome) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				e = event{Action: "output", Output: line}
			}
			o.take(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what go test said: %w", err)
		}
	}
}

func (o *outcome) unit(e event) *unit {
	path := cmp.Or(e.Package, e.ImportPath)
	if i := strings.IndexByte(path, ' '); i > 0 { // "p [p.test]" is how the compiler calls p built for its tests
		path = path[:i]
	}
	u := o.units[path]
	if u == nil {
		u = &unit{open: map[string]struct{}{}}
		o.units[path] = u
	}
	return u
}

func (o *outcome) take(e event) {
	u := o.unit(e)
	u.raced = u.raced || strings.Contains(e.Output, "WARNING: DATA RACE") || strings.Contains(e.Output, "race detected during execution of test")
	if e.Test == "" {
		u.take(e)
		return
	}
	whole, _, part := strings.Cut(e.Test, "/")
	r := o.tests[name{e.Package, whole}]
	if r == nil {
		r = &result{name: name{e.Package, whole}}
		o.tests[r.name] = r
	}
	switch e.Action {
	case "run":
		u.open[e.Test] = struct{}{}
	case "attr":
		if e.Key == safety.Key {
			r.safety = e.Value
		}
	case "output":
		r.said = append(r.said, strings.TrimSuffix(e.Output, "\n"))
	case "pass", "fail", "skip":
		delete(u.open, e.Test)
		o.count(e, !part)
		r.failed = r.failed || e.Action == "fail"
		r.passed = r.passed || e.Action == "pass" && !part
	}
}

func (o *outcome) count(e event, whole bool) {
	switch e.Action {
	case "pass":
		o.passed++
	case "fail":
		o.failed++
	case "skip":
		if strings.HasSuffix(e.Test, "Helper") && whole { // not a test but a process that one starts
			return
		}
		o.skipped++
		o.skips = append(o.skips, name{e.Package, e.Test}.String())
	}
}

// summary is what package testing and go test say of a package as a whole, whatever happened.
var summary = regexp.MustCompile(`^(PASS|FAIL|ok|exit status \d+|testing: warning: no tests to run|\?)?(\s|$)`)

// take takes what is said of the package itself.
func (u *unit) take(e event) {
	switch e.Action {
	case "output", "build-output":
		text := strings.TrimSuffix(e.Output, "\n")
		u.after = u.after || u.ended && !summary.MatchString(text)
		u.ended = u.ended || text == "PASS" || text == "FAIL"
		if text != "" {
			u.said = append(u.said, text)
		}
	case "fail", "build-fail":
		u.failed = true
	}
}

// failures are the tests that failed, in the order of their names.
func (o *outcome) failures() (list []*result) {
	for _, r := range o.tests {
		if r.failed {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *result) int { return cmp.Compare(a.String(), b.String()) })
	return list
}

// crashes are the packages that failed otherwise than by a test that says so: they did not build, ended in the middle of
// their tests, or had their TestMain find something. Running one test again says nothing about those that never ran. A
// test that panics itself is told as failed before the trace, so the last word of package testing must be there, too.
func (o *outcome) crashes() (list []string) {
	said := map[string]bool{}
	for _, r := range o.failures() {
		said[r.pkg] = true
	}
	for path, u := range o.units {
		if u.failed && (!said[path] || len(u.open) > 0 || !u.ended || u.after) {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// lastWords is what a package that crashed said: a trace is taken for the output of a test that had not ended, or of the
// last one.
func (o *outcome) lastWords(path string) (said []string) {
	for _, r := range o.failures() {
		if r.pkg == path {
			said = append(said, r.said...)
		}
	}
	for test := range o.units[path].open {
		if r := o.tests[name{path, test}]; r != nil && !r.failed {
			said = append(said, r.said...)
		}
	}
	said = append(said, o.units[path].said...)
	if i := slices.IndexFunc(said, isTrace); i >= 0 {
		said = said[i:min(len(said), i+end)] // its head says what happened, its end where other goroutines are
	}
	return said
}

func isTrace(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}
