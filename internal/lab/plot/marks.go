package plot

import (
	"image/color"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// rowHeight is that of a row of texts of marks.
const rowHeight = 0.17 * vg.Inch

// letter is about how wide a letter of a mark's text is.
const letter = 4.6

// labels says in which row above the panels the text of each mark stands, so that none covers another.
type labels struct {
	row  []int
	rows int
}

// labels puts each text into the lowest row that is free at its place. Where the axes end is not known
// yet: that the texts are a little closer together than here is what the space between them is for.
func (f Figure) labels() (l labels) {
	const space = 12
	scale := float64(width-f.legendWidth()-60) / f.End
	var ends []float64 // of the last text in each row
	for _, m := range f.Marks {
		half := float64(len(m.Text)) * letter / 2
		from, to := m.At*scale-half, m.At*scale+half+space
		row := 0
		for row < len(ends) && ends[row] > from {
			row++
		}
		if row == len(ends) {
			ends = append(ends, 0)
		}
		ends[row] = to
		l.row = append(l.row, row)
	}
	l.rows = len(ends)
	return l
}

// drawMarks draws each mark through all panels, with its text above.
func (f Figure) drawMarks(c draw.Canvas, plots [][]*gonum.Plot, canvases [][]draw.Canvas) {
	line := draw.LineStyle{Color: dark, Width: vg.Points(0.8), Dashes: []vg.Length{vg.Points(3), vg.Points(2)}}
	first := plots[0][0].DataCanvas(canvases[0][0])
	style := plots[0][0].Legend.TextStyle
	style.Color = dark
	style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
	l := f.labels()
	place := func(i int) (x, base vg.Length) {
		return first.X(f.Marks[i].At / f.End), canvases[0][0].Max.Y + vg.Length(l.row[i])*rowHeight + vg.Points(2)
	}
	for i := range f.Marks {
		x, base := place(i)
		for j := range plots {
			data := plots[j][0].DataCanvas(canvases[j][0])
			c.StrokeLine2(line, x, data.Min.Y, x, data.Max.Y)
		}
		c.StrokeLine2(line, x, first.Max.Y, x, base)
	}
	for i, m := range f.Marks { // over the lines of others
		x, base := place(i)
		half := style.Width(m.Text) / 2
		at := min(max(x, c.Min.X+half), c.Max.X-half)
		c.SetColor(color.White)
		c.Fill(vg.Rectangle{Min: vg.Point{X: at - half, Y: base}, Max: vg.Point{X: at + half, Y: base + rowHeight*0.8}}.Path())
		c.FillText(style, vg.Point{X: at, Y: base}, m.Text)
	}
}
