package labapi

import (
	"bytes"
	"context"

	"scaffold.dev/scaffold/internal/lab/plot"
	"scaffold.dev/scaffold/internal/lab/timeline"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// Draw draws a run's result or anything else.
func (calls) Draw(_ context.Context, q *labv1.DrawRequest) (*labv1.Drawing, error) {
	var f plot.Figure
	var err error
	switch what := q.What.(type) {
	case *labv1.DrawRequest_Result:
		f, err = resultFigure(what.Result)
	case *labv1.DrawRequest_Figure:
		f, err = figure(what.Figure)
	default:
		err = bad("expected either \"result\" or \"figure\"")
	}
	if err != nil {
		return nil, err
	}
	return draw(q.Format, f)
}

func draw(format string, f plot.Figure) (*labv1.Drawing, error) {
	var image bytes.Buffer
	var err error
	switch format {
	case "svg":
		err = f.SVG(&image)
	case "png":
		err = f.PNG(&image)
	default:
		return nil, bad("format %q: expected svg or png", format)
	}
	if err != nil {
		return nil, bad("%w", err)
	}
	return &labv1.Drawing{Image: image.Bytes()}, nil
}

// resultFigure leaves the certificate out, whose large numbers a message's JSON has as text; it is not drawn.
func resultFigure(m *labv1.Result) (plot.Figure, error) {
	m.Certificate = nil
	var r timeline.Result
	if err := back(m, &r); err != nil {
		return plot.Figure{}, bad("%w", err)
	}
	return r.Figure(), nil
}

func figure(m *labv1.Figure) (plot.Figure, error) {
	f := plot.Figure{Title: m.Title, Axis: m.Axis, End: m.End, Steps: m.Steps}
	for _, p := range m.Panels {
		panel := plot.Panel{Label: p.Label, Log: p.Log}
		for _, l := range p.Lines {
			line := plot.Line{Name: l.Name}
			for _, pair := range l.Points {
				var at [2]float64
				if err := back(pair, &at); err != nil || len(pair.GetValues()) != len(at) {
					return f, bad("line %q: %v: expected a point of two numbers", l.Name, pair.AsSlice())
				}
				line.Points = append(line.Points, plot.Point{At: at[0], Value: at[1]})
			}
			panel.Lines = append(panel.Lines, line)
		}
		f.Panels = append(f.Panels, panel)
	}
	for _, m := range m.Marks {
		f.Marks = append(f.Marks, plot.Mark{At: m.At, Text: m.Text})
	}
	return f, nil
}
