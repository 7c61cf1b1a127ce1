package sos

import (
	"io"
	"os"
	"path/filepath"

	"scaffold.dev/scaffold/internal/lab/plot"
)

// figure is what is drawn of a result: each column that the thesis has, too, as parts of its first number, here and there; the
// others as they are, those of a unit together.
func (r *Result) figure() plot.Figure {
	if len(r.Across) > 0 {
		return r.across()
	}
	rows := r.rows()
	f := plot.Figure{Title: r.Title, Axis: " ", Steps: rows, End: float64(max(len(rows)-1, 1))}
	units := map[string]int{}
	for _, what := range r.columns() {
		if r.compared(what) {
			here, thesis := r.shapes(what)
			if len(here.Points) == 0 { // shapes themselves
				continue
			}
			f.Panels = append(f.Panels, plot.Panel{Label: what + " / first", Lines: []plot.Line{here, thesis}, Log: r.Log})
			continue
		}
		line, unit := plot.Line{Name: what}, ""
		for i, of := range rows {
			if c := r.cell(of, what); c != nil {
				line.Points, unit = append(line.Points, plot.Point{At: float64(i), Value: c.Value}), c.Unit
			}
		}
		at, ok := units[unit]
		if !ok {
			at = len(f.Panels)
			units[unit] = at
			f.Panels = append(f.Panels, plot.Panel{Label: unit, Log: r.Log})
		}
		f.Panels[at].Lines = append(f.Panels[at].Lines, line)
	}
	return f
}

// shapes are a column's two lines.
func (r *Result) shapes(what string) (here, thesis plot.Line) {
	here, thesis = plot.Line{Name: "here"}, plot.Line{Name: "thesis"}
	for i, of := range r.rows() {
		c := r.cell(of, what)
		if c == nil {
			continue
		}
		x, y := r.shape(c)
		if x != 0 {
			here.Points = append(here.Points, plot.Point{At: float64(i), Value: x})
		}
		if y != 0 {
			thesis.Points = append(thesis.Points, plot.Point{At: float64(i), Value: y})
		}
	}
	return here, thesis
}

// across draws rows over the columns.
func (r *Result) across() plot.Figure {
	columns := r.columns()
	p := plot.Panel{Log: r.Log}
	for _, of := range r.Across {
		line := plot.Line{Name: of}
		for i, what := range columns {
			if c := r.cell(of, what); c != nil {
				line.Points, p.Label = append(line.Points, plot.Point{At: float64(i), Value: c.Value}), c.Unit
			}
		}
		if len(line.Points) > 0 { // else: a quick run leaves it out
			p.Lines = append(p.Lines, line)
		}
	}
	return plot.Figure{Title: r.Title, Axis: " ", Steps: columns, End: float64(max(len(columns)-1, 1)), Panels: []plot.Panel{p}}
}

// Draw writes the figure, as SVG and PNG. What has words alone has none.
func (r *Result) Draw(dir string) error {
	if len(r.Cells) == 0 {
		return nil
	}
	f := r.figure()
	for _, as := range []struct {
		end  string
		draw func(io.Writer) error
	}{{".svg", f.SVG}, {".png", f.PNG}} {
		if err := drawTo(filepath.Join(dir, r.Name+as.end), as.draw); err != nil {
			return err
		}
	}
	return nil
}

func drawTo(path string, draw func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := draw(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
