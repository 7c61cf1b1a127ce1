package rules

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const page = "docs/architecture.md"

// houses are the packages that the page has a section of rooms for, by the section's title.
var houses = map[string]string{
	"The rooms of a host":           "internal/host",
	"The rooms of the controller":   "internal/controller/controld",
	"The rooms of a lab":            "internal/lab",
	"The rooms of the command line": "internal/cli",
}

// A row is one of a table of packages or rooms: those that it is about, and those below them
// that its text names.
type row struct {
	line         int
	about, below []string
}

func (r row) names(pkg string) bool {
	return slices.Contains(r.about, pkg) || slices.Contains(r.below, pkg)
}

var quoted = regexp.MustCompile("`([^`]+)`")

// tables reads the rows of a section, whose rooms are below dir: "" where they are named in full.
func tables(t *testing.T, title, dir string) (rows []row) {
	t.Helper()
	section, column, n := "", 0, 0
	for line := range strings.Lines(read(t, page)) {
		n++
		if after, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			section = after
		}
		cells := strings.Split(line, "|")
		if section != title || len(cells) < 4 {
			continue
		}
		if at := slices.IndexFunc(cells, heads); at > 0 {
			column = at
		} else if !strings.Contains(cells[column], "(drawn, not cut out yet)") {
			rows = append(rows, rowOf(n, cells[column], strings.Join(cells[column+1:], "|"), dir))
		}
	}
	if len(rows) == 0 {
		t.Errorf("%s: no table under %q: does this test still read the page?", page, title)
	}
	return rows
}

// heads reports whether a cell is the head of the column of names.
func heads(cell string) bool {
	cell = strings.TrimSpace(cell)
	return cell == "package" || cell == "room"
}

func rowOf(line int, first, rest, dir string) row {
	r := row{line: line, about: packages(first, dir)}
	for _, name := range packages(rest, dir) {
		if slices.ContainsFunc(r.about, func(of string) bool { return under(name, of) }) {
			r.below = append(r.below, name)
		}
	}
	return r
}

// packages are what a cell has in quotes.
func packages(cell, dir string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		if dir != "" {
			m[1] = dir + "/" + m[1]
		}
		all = append(all, m[1])
	}
	return all
}

func TestThePageNamesEachPackageThatThereIs(t *testing.T) {
	there, named := map[string]bool{}, map[string]bool{}
	for _, p := range tree(t) {
		there[p.name()] = true
	}
	all := tables(t, "Rooms", "")
	for title, dir := range houses {
		all = append(all, tables(t, title, dir)...)
	}
	for _, r := range all {
		for _, name := range append(r.about, r.below...) {
			named[name] = true
			if !there[name] {
				t.Errorf("%s:%d: there is no package %s", page, r.line, name)
			}
		}
	}
	for _, p := range tree(t) {
		if !named[p.name()] {
			t.Errorf("%s is in no table of %s: %q", p.name(), page, firstOf(p.Doc))
		}
	}
}

// firstOf is the first sentence of a comment.
func firstOf(doc string) string {
	first, _, _ := strings.Cut(doc, ". ")
	return first
}

// Each room of a house has a row of its own in the house's section, so that it says what the room may know.
func TestThePageHasARowForEachRoom(t *testing.T) {
	rooms := map[string]string{} // to the title of its section
	for title, house := range houses {
		for room := range insides[house] {
			rooms[house+"/"+room] = title
		}
		for _, list := range beside {
			for _, room := range list {
				if under(room, house) {
					rooms[room] = title
				}
			}
		}
	}
	for room, title := range rooms {
		if !slices.ContainsFunc(tables(t, title, houses[title]), func(r row) bool { return r.names(room) }) {
			t.Errorf("%s: no row under %q for %s", page, title, room)
		}
	}
}
