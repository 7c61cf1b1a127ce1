package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
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
	failed bool
	safety string // of which promise the test is, "" for none
	raced  bool
	said   []string
}

// A unit is a package whose tests ran.
type unit struct {
	failed  bool
	seconds float64
	said    []string            // beside its tests: a trace of a crash, what TestMain or the compiler said
	open    map[string]struct{} // tests and parts that began and did not end
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
	if e.Test == "" {
		o.takePackage(u, e)
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
		r.raced = r.raced || strings.Contains(e.Output, "WARNING: DATA RACE")
		r.said = append(r.said, strings.TrimSuffix(e.Output, "\n"))
	case "pass", "fail", "skip":
		delete(u.open, e.Test)
		o.count(e, !part)
		r.failed = r.failed || e.Action == "fail"
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

func (o *outcome) takePackage(u *unit, e event) {
	switch e.Action {
	case "output", "build-output":
		if text := strings.TrimSuffix(e.Output, "\n"); text != "" {
			u.said = append(u.said, text)
		}
	case "pass", "skip":
		u.seconds = e.Elapsed
	case "fail", "build-fail":
		u.failed, u.seconds = true, cmp.Or(e.Elapsed, u.seconds)
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
// a test, or had their TestMain find something. Running one test again says nothing about those that never ran.
func (o *outcome) crashes() (list []string) {
	said := map[string]bool{}
	for _, r := range o.failures() {
		said[r.pkg] = true
	}
	for path, u := range o.units {
		if u.failed && (!said[path] || len(u.open) > 0) {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// lastWords is what a package that crashed said: a trace is taken for the output of a test that had not ended.
func (o *outcome) lastWords(path string) (said []string) {
	u := o.units[path]
	for test := range u.open {
		if r := o.tests[name{path, test}]; r != nil {
			said = append(said, r.said...)
		}
	}
	return append(said, u.said...)
}
