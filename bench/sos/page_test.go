package sos

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func example() *Result {
	return &Result{
		Name: "sos_example", Title: "An example", Thesis: "table 0.1", Setting: "Nothing runs.", Lacks: "All.", Processors: 2,
		Cells: []Cell{
			{Of: "1 pair", What: "goodput", Unit: "Gbit/s", Value: 0.1, Thesis: 8, N: 1},
			{Of: "1 pair", What: "sessions", Value: 3, N: 1},
			{Of: "2 pairs", What: "goodput", Unit: "Gbit/s", Value: 0.2, Thesis: 16, N: 1, Marked: "late"},
			{Of: "many", What: "goodput", Unit: "Gbit/s", Value: 123.4, N: 1},
		},
		Words: []Words{{Title: "Rules", Head: []string{"a", "b"}, Rows: [][]string{{"1", "2"}}}},
		Notes: []string{"one", "two"},
	}
}

// A number stands beside the thesis' own, each with what it is of the first one of its column.
func TestATableHasTheThesisNumbersAndTheShapes(t *testing.T) {
	want := `|  | goodput, Gbit/s, thesis | goodput, Gbit/s, here | sessions |
| --- | --- | --- | --- |
| 1 pair | 8 (1) | 0.1 (1) | 3 |
| 2 pairs | 16 (2) | 0.2 (2) * |  |
| many |  | 123 (1234) |  |
`
	if got := example().table(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Where the first number is missing in one of the two, the shape is of the first that both have.
func TestAShapeIsOfTheFirstNumberThatBothHave(t *testing.T) {
	r := Result{Cells: []Cell{{What: "a", Value: 5}, {What: "a", Value: 2, Thesis: 4}, {What: "a", Value: 1, Thesis: 1}, {What: "b", Value: 1},
		{What: "c", Unit: Ratio, Value: 1, Thesis: 1}}}
	for i, want := range [][2]float64{{2.5, 0}, {1, 1}, {0.5, 0.25}, {0, 0}, {0, 0}} {
		if here, thesis := r.shape(&r.Cells[i]); here != want[0] || thesis != want[1] {
			t.Errorf("cell %d: %v here, %v in the thesis, want %v", i, here, thesis, want)
		}
	}
}

func TestAPageIsWrittenFromTheResultsThatAreThere(t *testing.T) {
	dir := t.TempDir()
	if err := example().Save(dir); err != nil {
		t.Fatal(err)
	}
	if err := WritePage(dir, []string{"sos_missing", "sos_example"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, Page))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## An example", "table 0.1", "(sos_example.svg)", "| a | b |", "- two\n", "\nAll.\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
	for _, end := range []string{".svg", ".png"} {
		if s, err := os.Stat(filepath.Join(dir, "sos_example"+end)); err != nil || s.Size() == 0 {
			t.Errorf("no figure %s: %v", end, err)
		}
	}
}

// Columns of the thesis are drawn as shapes, here and there; rows over columns where a result says so.
func TestAFigureShowsShapesBesideTheThesis(t *testing.T) {
	r := example()
	f := r.figure()
	if len(f.Panels) != 2 || f.Panels[0].Lines[0].Points[1].Value != 2 || f.Panels[0].Lines[1].Points[1].Value != 2 {
		t.Errorf("panels %+v", f.Panels)
	}
	r.Across = []string{"2 pairs", "left out"}
	f = r.figure()
	if len(f.Panels) != 1 || len(f.Panels[0].Lines) != 1 || !slices.Equal(f.Steps, []string{"goodput", "sessions"}) {
		t.Errorf("across: %+v", f)
	}
}
