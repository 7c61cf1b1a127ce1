package plot

import (
	"cmp"
	"image/color"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// colors are those of Okabe and Ito, which people with any kind of colour vision tell apart.
var colors = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
}

var (
	faint = color.Gray{0xe4}
	dark  = color.Gray{0x60}
)

// draw fills the canvas: the title and the texts of the marks above, the panels below.
func (f Figure) draw(c draw.Canvas) {
	top := titleHeight + vg.Length(f.labels().rows)*rowHeight
	plots := f.plots()
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadLeft: vg.Points(4), PadRight: f.legendWidth() + vg.Points(8), PadBottom: vg.Points(4), PadY: vg.Points(8)}
	canvases := gonum.Align(plots, tiles, draw.Crop(c, 0, 0, 0, -top))
	for i, row := range plots {
		row[0].Draw(canvases[i][0])
	}
	f.drawTitle(c, plots[0][0])
	f.drawMarks(c, plots, canvases)
}

func (f Figure) drawTitle(c draw.Canvas, p *gonum.Plot) {
	style := p.Title.TextStyle
	style.Font.Size = vg.Points(12)
	style.XAlign, style.YAlign = draw.XCenter, draw.YTop
	c.FillText(style, vg.Point{X: c.Center().X, Y: c.Max.Y - vg.Points(6)}, f.Title)
}

// plots has one row for each panel, as the library wants it.
func (f Figure) plots() [][]*gonum.Plot {
	var rows [][]*gonum.Plot
	next := 0 // colour: a name has the same one in all panels
	seen := map[string]color.Color{}
	for i, panel := range f.Panels {
		p := f.axes(panel)
		if i == len(f.Panels)-1 {
			p.X.Label.Text = cmp.Or(f.Axis, "seconds")
		}
		for _, line := range panel.Lines {
			if seen[line.Name] == nil {
				seen[line.Name] = colors[next%len(colors)]
				next++
			}
			f.addLine(p, line, seen[line.Name])
		}
		rows = append(rows, []*gonum.Plot{p})
	}
	return rows
}

// legendWidth is how much room is left for names beside the panels.
func (f Figure) legendWidth() vg.Length {
	longest := 0
	for _, p := range f.Panels {
		for _, l := range p.Lines {
			longest = max(longest, len(l.Name))
		}
	}
	return vg.Points(float64(longest)*letter + 24)
}

func (f Figure) axes(panel Panel) *gonum.Plot {
	p := gonum.New()
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
		style.Font.Size = vg.Points(9)
	}
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Min, p.X.Max = 0, f.End
	p.Y.Label.Text = panel.Label
	p.Y.Min, p.Y.Max = 0, 1
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	p.Legend.ThumbnailWidth = vg.Points(14)
	p.Legend.XOffs = f.legendWidth()
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{12}, ticks{5}
	if f.Steps != nil {
		p.X.Tick.Marker = steps(f.Steps)
	}
	if panel.Log {
		p.Y.Scale, p.Y.Tick.Marker = gonum.LogScale{}, powers{}
		p.Y.Min, p.Y.Max = panel.decades()
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)
	return p
}

// addLine draws a line, with a dot for each step if there are steps; the library widens the axes to hold it.
func (f Figure) addLine(p *gonum.Plot, line Line, c color.Color) {
	var points plotter.XYs
	for _, at := range line.Points {
		points = append(points, plotter.XY{X: at.At, Y: at.Value})
	}
	drawn := &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: c, Width: vg.Points(1.3)}}
	if len(points) > 0 {
		p.Add(drawn)
	}
	if f.Steps != nil && len(points) > 0 {
		p.Add(&plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: c, Radius: vg.Points(2.2), Shape: draw.CircleGlyph{}}})
	}
	p.Legend.Add(line.Name, drawn)
}
