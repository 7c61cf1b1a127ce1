package sos

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A Result is what one experiment measured, as its JSON file has it.
type Result struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Thesis  string `json:"thesis,omitempty"` // where it stands there; "": it is ours
	Setting string `json:"setting"`          // what was run here
	Lacks   string `json:"lacks,omitempty"`  // what this machine cannot show, and what to look at instead

	Quick      bool    `json:"quick,omitempty"` // shorter, and a part of the cells: nothing to publish
	Processors int     `json:"processors"`
	Load       float64 `json:"load"` // of the machine before it began: processes that wanted a processor

	Cells []Cell   `json:"cells"`
	Words []Words  `json:"words,omitempty"`
	Notes []string `json:"notes,omitempty"`

	Across []string `json:"across,omitempty"` // rows that are drawn as lines over the columns; none: columns over the rows
	Log    bool     `json:"log,omitempty"`    // drawn by powers of ten
}

// A Cell is one number of a table. Rows and columns stand in the order in which they first come.
type Cell struct {
	Of     string  `json:"of"`   // its row
	What   string  `json:"what"` // its column
	Unit   string  `json:"unit"`
	Value  float64 `json:"value"` // median of N
	P25    float64 `json:"p25"`
	P75    float64 `json:"p75"`
	N      int     `json:"n"`
	Thesis float64 `json:"thesis,omitempty"` // 0: the thesis has none
	Marked string  `json:"marked,omitempty"` // why the emulator is to blame for it
}

// Ratio is the unit of a cell that is a shape itself.
const Ratio = "ratio"

// Words are a table of words.
type Words struct {
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// rows are the names of all rows, columns those of all columns.
func (r *Result) rows() []string    { return r.names(func(c Cell) string { return c.Of }) }
func (r *Result) columns() []string { return r.names(func(c Cell) string { return c.What }) }

func (r *Result) names(of func(Cell) string) (names []string) {
	for _, c := range r.Cells {
		if !slices.Contains(names, of(c)) {
			names = append(names, of(c))
		}
	}
	return names
}

// cell is one of the table, nil where there is none.
func (r *Result) cell(of, what string) *Cell {
	for i, c := range r.Cells {
		if c.Of == of && c.What == what {
			return &r.Cells[i]
		}
	}
	return nil
}

// compared reports whether the thesis has a number in a column.
func (r *Result) compared(what string) bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.What == what && c.Thesis != 0 })
}

// shape is a cell beside the first one of its column for which both have a number, here and in the thesis; 0: that is not to
// be had.
func (r *Result) shape(c *Cell) (here, thesis float64) {
	for _, first := range r.Cells {
		if c.Unit != Ratio && first.What == c.What && first.Thesis != 0 && first.Value != 0 {
			return c.Value / first.Value, c.Thesis / first.Thesis
		}
	}
	return 0, 0
}

// Load reads a result.
func Load(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Result)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Save writes a result and its figure into a directory.
func (r *Result) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, r.Name+".json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return r.Draw(dir)
}
