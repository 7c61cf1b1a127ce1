package labapi

import (
	"bytes"
	"net/http"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/plot"
)

// A FigureRequest asks for a drawing of a run's result or of anything else.
type FigureRequest struct {
	Format string      `json:"format"` // "svg" or "png"
	Result *lab.Result `json:"result"` // either this
	Figure *Figure     `json:"figure"` // or this
}

// A Figure has panels one above the other, with one axis below all of them that begins at 0.
type Figure struct {
	Title  string   `json:"title"`
	Axis   string   `json:"axis"`  // quantity and unit of the axis below; "" for "seconds"
	End    float64  `json:"end"`   // where that axis ends, more than 0
	Steps  []string `json:"steps"` // what stands on it at 0, 1, 2 and so on in place of numbers
	Panels []Panel  `json:"panels"`
	Marks  []Mark   `json:"marks"`
}

// A Panel has an axis of its own on the left.
type Panel struct {
	Label string `json:"label"` // quantity and unit
	Log   bool   `json:"log"`   // by powers of ten: values are above 0
	Lines []Line `json:"lines"`
}

// A Line is drawn through its points.
type Line struct {
	Name   string       `json:"name"`
	Points [][2]float64 `json:"points"` // pairs of the place on the axis below and the value
}

// A Mark is a line through all panels with a text above.
type Mark struct {
	At   float64 `json:"at"`
	Text string  `json:"text"`
}

func (s *Server) figure(w http.ResponseWriter, r *http.Request) (any, error) {
	var q FigureRequest
	if err := receive(r, &q); err != nil {
		return nil, err
	}
	if (q.Result == nil) == (q.Figure == nil) {
		return nil, bad("expected either \"result\" or \"figure\"")
	}
	figure := plot.Figure{}
	if q.Result != nil {
		figure = q.Result.Figure()
	} else {
		figure = q.Figure.plot()
	}
	return nil, draw(w, q.Format, figure)
}

// draw checks the whole before it sends anything.
func draw(w http.ResponseWriter, format string, f plot.Figure) error {
	var image bytes.Buffer
	var err error
	kind := "image/svg+xml"
	switch format {
	case "svg":
		err = f.SVG(&image)
	case "png":
		kind, err = "image/png", f.PNG(&image)
	default:
		return bad("format %q: expected svg or png", format)
	}
	if err != nil {
		return bad("%w", err)
	}
	w.Header().Set("Content-Type", kind)
	w.Write(image.Bytes()) //nolint:errcheck // the other side went away
	return nil
}

func (f *Figure) plot() plot.Figure {
	out := plot.Figure{Title: f.Title, Axis: f.Axis, End: f.End, Steps: f.Steps}
	for _, p := range f.Panels {
		panel := plot.Panel{Label: p.Label, Log: p.Log}
		for _, l := range p.Lines {
			line := plot.Line{Name: l.Name}
			for _, at := range l.Points {
				line.Points = append(line.Points, plot.Point{At: at[0], Value: at[1]})
			}
			panel.Lines = append(panel.Lines, line)
		}
		out.Panels = append(out.Panels, panel)
	}
	for _, m := range f.Marks {
		out.Marks = append(out.Marks, plot.Mark{At: m.At, Text: m.Text})
	}
	return out
}
