package plot_test

import (
	"bytes"
	"image/png"
	"math"
	"os"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/plot"
)

func figure() plot.Figure {
	var up, down plot.Line
	up.Name, down.Name = "client 1", "client 2"
	for i := range 300 {
		at := float64(i) / 10
		up.Points = append(up.Points, plot.Point{At: at, Value: 5 + math.Sin(at)})
		down.Points = append(down.Points, plot.Point{At: at, Value: 2500 - at*10})
	}
	return plot.Figure{
		Title: "Two & two", End: 30,
		Panels: []plot.Panel{
			{Label: "Mbit/s", Lines: []plot.Line{up}},
			{Label: "requests", Lines: []plot.Line{down, {Name: "client 3"}}},
		},
		Marks: []plot.Mark{{At: 0, Text: "starts"}, {At: 10, Text: "server 1 fails"}, {At: 10.5, Text: "server 1 is back"}, {At: 30, Text: "ends"}},
	}
}

func svg(t *testing.T, f plot.Figure) string {
	t.Helper()
	var b bytes.Buffer
	if err := f.SVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAFigureShowsAllItsTexts(t *testing.T) {
	f := figure()
	text := svg(t, f)
	for _, want := range []string{"Two &amp; two", "Mbit/s", "requests", "client 1", "client 2", "client 3", "server 1 fails", "server 1 is back", "seconds"} {
		if !strings.Contains(text, want) {
			t.Errorf("the SVG does not say %q", want)
		}
	}
	if again := svg(t, f); again != text {
		t.Error("the same figure gave another SVG")
	}
}

func TestPNGIsAsWideAsSVG(t *testing.T) {
	var b bytes.Buffer
	if err := figure().PNG(&b); err != nil {
		t.Fatal(err)
	}
	if path := os.Getenv("PLOT_TO"); path != "" {
		os.WriteFile(path, b.Bytes(), 0o644)
	}
	img, err := png.Decode(&b)
	if err != nil || img.Bounds().Dx() < 900 || img.Bounds().Dy() < 400 {
		t.Errorf("image %v, %v", img.Bounds(), err)
	}
}

func TestFiguresThatCannotBeDrawnSayWhy(t *testing.T) {
	for what, f := range map[string]plot.Figure{
		"nothing was measured": {Title: "empty", End: 1},
		"ends at 0":            {Panels: figure().Panels},
		"ends at NaN":          {Panels: figure().Panels, End: math.NaN()},
		"expected finite":      {End: 1, Panels: []plot.Panel{{Lines: []plot.Line{{Points: []plot.Point{{At: 1, Value: math.Inf(1)}}}}}}},
	} {
		for _, write := range []func(*bytes.Buffer) error{func(b *bytes.Buffer) error { return f.SVG(b) }, func(b *bytes.Buffer) error { return f.PNG(b) }} {
			var b bytes.Buffer
			if err := write(&b); err == nil || !strings.Contains(err.Error(), what) || b.Len() > 0 {
				t.Errorf("%q: %v, %d bytes", what, err, b.Len())
			}
		}
	}
}

func TestAFigureOverStepsNamesThem(t *testing.T) {
	var line plot.Line
	for i := range 3 {
		line.Points = append(line.Points, plot.Point{At: float64(i), Value: math.Pow(30, float64(i))})
	}
	f := plot.Figure{Title: "Steps", End: 2, Axis: "routers", Steps: []string{"one", "two", "four"},
		Panels: []plot.Panel{{Label: "packets/s", Lines: []plot.Line{line}, Log: true}}}
	text := svg(t, f)
	for _, want := range []string{"routers", "one", "two", "four", ">1000<", ">100<", ">10<", ">1<"} {
		if !strings.Contains(text, want) {
			t.Errorf("the SVG does not say %q", want)
		}
	}
	f.Panels[0].Lines[0].Points[0].Value = 0
	if err := f.Check(); err == nil || !strings.Contains(err.Error(), "above 0") {
		t.Errorf("0 on a logarithmic axis: %v", err)
	}
}
