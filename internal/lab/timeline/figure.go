package timeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plot"
)

// LoadResult reads what Save wrote.
func LoadResult(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: not the result of a run: %w", path, err)
	}
	if err := file.CheckName(r.Name); err != nil {
		return nil, fmt.Errorf("%s: not the result of a run: %w", path, err)
	}
	return r, nil
}

// Save writes the result, and its figure as SVG and PNG, to files in a directory that are named after
// the lab; it returns their paths.
func (r *Result) Save(dir string) ([]string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, r.Name+".json")
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return nil, err
	}
	plots, err := r.Plot(dir)
	return append([]string{path}, plots...), err
}

// Plot draws the result into a directory, as SVG and PNG, and returns the paths.
func (r *Result) Plot(dir string) (paths []string, err error) {
	figure := r.Figure()
	for _, ext := range []string{".svg", ".png"} {
		path := filepath.Join(dir, r.Name+ext)
		file, err := os.Create(path)
		if err != nil {
			return paths, err
		}
		if ext == ".svg" {
			err = figure.SVG(file)
		} else {
			err = figure.PNG(file)
		}
		if err = cmp.Or(err, file.Close()); err != nil {
			os.Remove(path)
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// Figure is the result as a plot: its series, with the steps that have a label, or all when none has.
func (r *Result) Figure() plot.Figure {
	f := plot.Figure{Title: cmp.Or(r.Title, r.Name), End: r.Took}
	for _, s := range r.Series {
		at := slices.IndexFunc(f.Panels, func(p plot.Panel) bool { return p.Label == s.Panel })
		if at < 0 {
			at = len(f.Panels)
			f.Panels = append(f.Panels, plot.Panel{Label: s.Panel})
		}
		line := plot.Line{Name: s.Name}
		for _, p := range s.Points {
			line.Points = append(line.Points, plot.Point{At: p[0], Value: p[1]})
		}
		f.Panels[at].Lines = append(f.Panels[at].Lines, line)
	}
	labelled := slices.ContainsFunc(r.Steps, func(s StepResult) bool { return s.Label != "" })
	for _, s := range r.Steps {
		if s.Label != "" || !labelled {
			f.Marks = append(f.Marks, plot.Mark{At: s.Began, Text: cmp.Or(s.Label, s.Do)})
		}
		if s.moved() && s.Label != "" {
			f.Marks = append(f.Marks, plot.Mark{At: s.Began + s.Took, Text: "plugged in"})
		}
	}
	return f
}

// moved reports whether the step is a move with a gap long enough to show.
func (s StepResult) moved() bool {
	return strings.HasPrefix(s.Do, "move ") && !strings.HasSuffix(s.Do, " first") && s.Took > 0.2
}
