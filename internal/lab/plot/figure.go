// Package plot draws what was measured over time: panels one above the other over the same seconds,
// with a mark through all of them where something was done to the network. The same figure gives the
// same SVG, byte for byte.
package plot

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Figure is what one run of an experiment measured.
type Figure struct {
	Title  string
	Panels []Panel // from the top
	Marks  []Mark
	End    float64  // of the time axis, in seconds; it begins at 0
	Axis   string   // what the horizontal axis is, "" for seconds
	Steps  []string // what stands on it at 0, 1, 2 and so on instead of numbers; nil for numbers
}

// A Panel has an axis of its own.
type Panel struct {
	Label string // of the axis: quantity and unit
	Lines []Line
	Log   bool // the axis goes by powers of ten: values are above 0
}

// A Line is one quantity over time.
type Line struct {
	Name   string
	Points []Point
}

// A Point is a value at a time in seconds.
type Point struct{ At, Value float64 }

// A Mark is an event.
type Mark struct {
	At   float64
	Text string
}

// How large figures are. Heights are those of one panel, and of the strip with the title.
const (
	width       = 9 * vg.Inch
	panelHeight = 2.1 * vg.Inch
	titleHeight = 0.4 * vg.Inch
	resolution  = 110 // of PNG, in dots per inch
)

// Check says why a figure cannot be drawn.
func (f Figure) Check() error {
	if len(f.Panels) == 0 {
		return fmt.Errorf("figure %q: nothing was measured over time", f.Title)
	}
	if !(f.End > 0) || math.IsInf(f.End, 0) {
		return fmt.Errorf("figure %q: its time axis ends at %v; expected a number of seconds", f.Title, f.End)
	}
	for _, p := range f.Panels {
		for _, l := range p.Lines {
			for _, at := range l.Points {
				if bad(at.At) || bad(at.Value) || p.Log && at.Value <= 0 {
					return fmt.Errorf("figure %q, line %q: %v at %v; expected finite numbers, above 0 on a logarithmic axis", f.Title, l.Name, at.Value, at.At)
				}
			}
		}
	}
	return nil
}

func bad(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

func (f Figure) size() (w, h vg.Length) {
	rows := vg.Length(f.labels().rows)
	return width, titleHeight + rows*rowHeight + vg.Length(len(f.Panels))*panelHeight
}

// SVG draws the figure as text that a browser shows.
func (f Figure) SVG(w io.Writer) error {
	if err := f.Check(); err != nil {
		return err
	}
	c := vgsvg.New(f.size())
	f.draw(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}

// PNG draws the figure as an image.
func (f Figure) PNG(w io.Writer) error {
	if err := f.Check(); err != nil {
		return err
	}
	width, height := f.size()
	c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(resolution))}
	f.draw(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}
