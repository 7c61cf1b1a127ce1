package sos

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Page is the name of the page of all results.
const Page = "sos.md"

const pageHead = `# The thesis' experiments, run again

"Steroid OpenFlow Service Scalability Analysis" (Clemson, December 2018) measures agents like those of [boost](../boost.md), on machines of 20 cores at links of 25 Gbit/s and 56 Gbit/s. This page has each of its experiments as it comes out here, beside the thesis' numbers. ` + "`make experiments EXPERIMENT=NAME`" + ` runs one and writes this page anew from the results (the JSON files beside it, which have quartiles, too); nothing in it is written by hand.

What two processors cannot show stands at each. In parentheses is a number's shape: what it is of the first one of its column that both have, here and in the thesis. Sizes depend on the machine, shapes less. An asterisk is at what the emulated path did not carry as it was asked to: the machine was too busy.
`

// WritePage writes the page of what a directory has of these experiments, in their order.
func WritePage(dir string, names []string) error {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, name := range names {
		r, err := Load(filepath.Join(dir, name+".json"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		b.WriteString(r.section())
	}
	return os.WriteFile(filepath.Join(dir, Page), []byte(b.String()), 0o644)
}

// section is a result's part of the page.
func (r *Result) section() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n`make experiments EXPERIMENT=%s`, %s. %s\n", r.Title, r.Name, cmp.Or(r.Thesis, "not in the thesis"), r.Setting)
	if r.Quick {
		b.WriteString("\n**A quick run: its numbers say nothing.**\n")
	}
	if len(r.Cells) > 0 {
		fmt.Fprintf(&b, "\n![%s](%s.svg)\n\n%s", r.Title, r.Name, r.table())
	}
	for _, w := range r.Words {
		fmt.Fprintf(&b, "\n%s:\n\n%s", w.Title, w.table())
	}
	if r.Lacks != "" {
		fmt.Fprintf(&b, "\n%s\n", r.Lacks)
	}
	fmt.Fprintf(&b, "\nOn %d processors, whose load was %s before it began.\n", r.Processors, number(r.Load))
	for i, n := range r.Notes {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s\n", n)
	}
	return b.String()
}

// table is the cells in rows and columns; a column that the thesis has, too, is two.
func (r *Result) table() string {
	w := Words{Head: []string{""}}
	for _, what := range r.columns() {
		head := what + r.unit(what)
		if r.compared(what) {
			w.Head = append(w.Head, head+", thesis")
			head += ", here"
		}
		w.Head = append(w.Head, head)
	}
	for _, of := range r.rows() {
		row := []string{of}
		for _, what := range r.columns() {
			row = append(row, r.entries(of, what)...)
		}
		w.Rows = append(w.Rows, row)
	}
	return w.table()
}

func (r *Result) unit(what string) string {
	for _, c := range r.Cells {
		if c.What == what && c.Unit != "" {
			return ", " + c.Unit
		}
	}
	return ""
}

// entries are what stands in a row at a column: one place, or two.
func (r *Result) entries(of, what string) []string {
	both := r.compared(what)
	c := r.cell(of, what)
	switch {
	case c == nil && both:
		return []string{"", ""}
	case c == nil:
		return []string{""}
	}
	mark := ""
	if c.Marked != "" {
		mark = " *"
	}
	if !both {
		return []string{number(c.Value) + mark}
	}
	here, thesis := r.shape(c)
	return []string{shaped(c.Thesis, thesis), shaped(c.Value, here) + mark}
}

// shaped is a number with its shape in parentheses; nothing for none.
func shaped(v, shape float64) string {
	switch {
	case v == 0:
		return ""
	case shape == 0:
		return number(v)
	}
	return fmt.Sprintf("%s (%s)", number(v), number(shape))
}

// number is three digits of a number.
func number(v float64) string {
	if v >= 100 || v <= -100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func (w Words) table() string {
	var b strings.Builder
	line := func(fields []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(fields, " | ")) }
	line(w.Head)
	line(strings.Split(strings.Repeat("---,", len(w.Head)-1)+"---", ","))
	for _, row := range w.Rows {
		line(row)
	}
	return b.String()
}
