package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/operate/doctor"
)

// The lines of a document between which the table is.
const (
	tableBegin = "<!-- by make test-kernels -->\n"
	tableEnd   = "<!-- end -->\n"
)

// markdown is a table with a column for each kernel: what it has, and what came of the tests.
func markdown(results []result) string {
	var b strings.Builder
	row := func(name string, cell func(result) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, r := range results {
			fmt.Fprintf(&b, " %s |", cell(r))
		}
		b.WriteString("\n")
	}
	row("Debian's kernel", func(r result) string { return r.release })
	row("---", func(result) string { return "---" })
	for _, name := range names(results, result.featureNames) {
		row(name, func(r result) string { return r.feature(name) })
	}
	for _, name := range names(results, result.suiteNames) {
		row("tests of `"+name+"`", func(r result) string { return r.suite(name) })
	}
	return b.String()
}

// names are those that of gives for the results, each once.
func names(results []result, of func(result) []string) (all []string) {
	for _, r := range results {
		for _, n := range of(r) {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}

func (r result) featureNames() (n []string) {
	for _, f := range r.features {
		n = append(n, f.Name)
	}
	return n
}

func (r result) suiteNames() (n []string) {
	for _, t := range r.suites {
		n = append(n, t.name)
	}
	return n
}

func (r result) feature(name string) string {
	for _, f := range r.features {
		switch {
		case f.Name != name:
		case f.State == doctor.Good:
			return "yes"
		case f.State == doctor.Missing:
			return "**no**"
		default:
			return "no"
		}
	}
	return ""
}

func (r result) suite(name string) string {
	for _, t := range r.suites {
		if t.name == name {
			return t.String()
		}
	}
	return "not run"
}

// record writes the table into the document, in the place of the one that is there.
func record(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(text, []byte(tableBegin))
	_, after, ended := bytes.Cut(rest, []byte(tableEnd))
	if !found || !ended {
		return fmt.Errorf("%s has no lines %q and %q to put the table between", file, strings.TrimSpace(tableBegin), strings.TrimSpace(tableEnd))
	}
	return os.WriteFile(file, slices.Concat(before, []byte(tableBegin), []byte(table), []byte(tableEnd), after), 0o644)
}
