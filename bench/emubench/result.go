package emubench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/lab/plot"
)

// A Result is all that a run measured. Its rows have the goals first.
type Result struct {
	bench.Report
	run *run
}

// WriteTable writes what has an aim or is not in the tables over the number of routers as other benchmarks do, and then
// those tables.
func (r *Result) WriteTable(w io.Writer) error {
	top := bench.Report{Notes: r.Notes}
	goals, _ := r.run.speedRows()
	top.Rows = append(append(goals, r.run.endRows()...), r.run.rows...)
	if err := top.WriteTable(w); err != nil {
		return err
	}
	for _, t := range r.tables() {
		if err := t.write(w, r.run.size.lengths); err != nil {
			return err
		}
	}
	return nil
}

// A table has a line for each kind, and a column for each number of routers.
type table struct {
	title string
	unit  string
	lines []tableLine
}

type tableLine struct {
	name   string
	values func(n int) []float64
	scale  float64
}

// tables are those of strings and of chains, by size of packets.
func (r *Result) tables() (all []table) {
	b := r.run
	for _, frame := range b.size.frames {
		t := table{title: fmt.Sprintf("engine alone, %d bytes", frame), unit: perCPU}
		for _, linked := range []bool{false, true} {
			for _, mode := range []Mode{LPM, Class} {
				name := string(mode)
				if linked {
					name += ", emulated links"
				}
				t.lines = append(t.lines, tableLine{name, func(n int) []float64 { return b.speeds[knot{mode, frame, linked, n}] }, 1})
			}
		}
		all = append(all, t)
	}
	for _, frame := range b.size.loads {
		t, scale := table{title: fmt.Sprintf("end to end, %d bytes", frame), unit: "1000 packets/s"}, 1e-3
		if frame == 0 {
			t, scale = table{title: "end to end, one TCP stream", unit: "Gbit/s"}, 1
		}
		for _, kind := range kinds {
			t.lines = append(t.lines, tableLine{kind, func(n int) []float64 { return b.through[cell{kind, frame, n}] }, scale})
		}
		all = append(all, t)
	}
	return all
}

// write leaves out lines without values, and tables without lines.
func (t table) write(w io.Writer, lengths []int) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	begun := false
	for _, l := range t.lines {
		if !l.filled(lengths) {
			continue
		}
		if !begun {
			begun = true
			fmt.Fprintf(tw, "\n%s: %s\n", t.title, t.unit)
			fmt.Fprint(tw, "routers\t")
			for _, n := range lengths {
				fmt.Fprintf(tw, "%d\t", n)
			}
			fmt.Fprintln(tw)
		}
		fmt.Fprint(tw, l.name, "\t")
		for _, n := range lengths {
			fmt.Fprint(tw, l.text(n), "\t")
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func (l tableLine) filled(lengths []int) bool {
	return slices.ContainsFunc(lengths, func(n int) bool { return len(l.values(n)) > 0 })
}

// text is the median, and the quartiles.
func (l tableLine) text(n int) string {
	got := l.values(n)
	if len(got) == 0 {
		return "-"
	}
	q := func(at float64) float64 { return l.scale * bench.Quantile(got, at) }
	return fmt.Sprintf("%.3g (%.3g..%.3g)", q(0.5), q(0.25), q(0.75))
}

// Figure shows packets and router-hops a second over the number of routers.
func (r *Result) Figure() plot.Figure {
	b := r.run
	f := plot.Figure{Title: "A string of routers, 74-byte packets", Axis: "routers", End: float64(len(b.size.lengths) - 1)}
	for _, n := range b.size.lengths {
		f.Steps = append(f.Steps, fmt.Sprint(n))
	}
	packets := plot.Panel{Label: "packets/s end to end", Log: true}
	hops := plot.Panel{Label: "router-hops/s", Log: true}
	tcp := plot.Panel{Label: "one TCP stream, Gbit/s"}
	for _, kind := range kinds {
		packets.Lines = append(packets.Lines, b.line(kind, func(n int) ([]float64, float64) { return b.through[cell{kind, smallFrame, n}], 1 })...)
		hops.Lines = append(hops.Lines, b.line(kind, func(n int) ([]float64, float64) { return b.through[cell{kind, smallFrame, n}], float64(n) })...)
		tcp.Lines = append(tcp.Lines, b.line(kind, func(n int) ([]float64, float64) { return b.through[cell{kind, 0, n}], 1 })...)
	}
	for _, mode := range []Mode{LPM, Class} {
		hops.Lines = append(hops.Lines, b.line("engine alone, "+string(mode), func(n int) ([]float64, float64) {
			return b.speeds[knot{mode, smallFrame, false, n}], 1e6
		})...)
	}
	for _, p := range []plot.Panel{packets, hops, tcp} {
		if len(p.Lines) > 0 {
			f.Panels = append(f.Panels, p)
		}
	}
	return f
}

// line has a point for each number of routers that was measured; there is none without a point.
func (b *run) line(name string, of func(n int) ([]float64, float64)) []plot.Line {
	l := plot.Line{Name: name}
	for i, n := range b.size.lengths {
		if got, scale := of(n); len(got) > 0 {
			l.Points = append(l.Points, plot.Point{At: float64(i), Value: scale * bench.Quantile(got, 0.5)})
		}
	}
	if len(l.Points) == 0 {
		return nil
	}
	return []plot.Line{l}
}
