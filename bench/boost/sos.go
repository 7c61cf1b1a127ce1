package boost

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/sos"
	"scaffold.dev/scaffold/internal/lab"
)

// A SosExperiment is one experiment of the thesis about Steroid OpenFlow Service, or one of ours beside them.
//
// They are rows of this module and no timelines of labs: what they tell is a rate or a share of a processor in each of some
// configurations, not what happens over seconds, and `scaffold bench boost` has the rig for it.
type SosExperiment struct {
	About sos.Result // what is said of it; it measures the rest
	Lab   string     // the text of its lab's file; "": it needs none
	Ships string     // or a lab file that ships with the program
	run   func(*sosRun, context.Context) error
}

// SosExperiments are all of them, in the order of the page.
func SosExperiments() []SosExperiment {
	return []SosExperiment{sosCores, sosLookup, sosSockets, sosRules, sosClients, sosPairs, sosNetwork, sosLoss}
}

// SosNames are their names.
func SosNames() (names []string) {
	for _, e := range SosExperiments() {
		names = append(names, e.About.Name)
	}
	return names
}

// SosOptions say for how long is measured.
type SosOptions struct {
	Each  time.Duration // of one measurement
	Runs  int           // turns
	Quick bool          // less than a minute for each experiment: a part of the cells, and one short run
	Log   func(format string, args ...any)
}

// sosQuick is how long a measurement of a quick run is.
const sosQuick = time.Second

// Measure measures, in a lab of its file where it has one.
func (e SosExperiment) Measure(ctx context.Context, l *lab.Lab, opt SosOptions) (*sos.Result, error) {
	res := e.About
	if opt.Quick {
		opt.Each, opt.Runs = sosQuick, 1
	}
	r := &sosRun{lab: l, opt: opt, res: &res}
	res.Quick, res.Processors, res.Load = opt.Quick, runtime.NumCPU(), loadOf(readLoad())
	if err := e.run(r, ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", res.Name, err)
	}
	return &res, nil
}

// readLoad is the machine's load as the kernel tells it.
func readLoad() string {
	text, _ := os.ReadFile("/proc/loadavg") // none: the load is 0
	return string(text)
}

// loadOf is how many processes wanted a processor in the last minute.
func loadOf(text string) (load float64) {
	fmt.Sscan(text, &load) //nolint:errcheck // the kernel writes numbers
	return load
}

// A sosRun is one experiment that is measured.
type sosRun struct {
	lab *lab.Lab
	opt SosOptions
	res *sos.Result
}

// put adds a cell: the median of what was measured, beside the thesis' number, 0 where it has none.
func (r *sosRun) put(of, what, unit string, thesis float64, all ...outcome) {
	row := judged("", unit, "", "", all)
	r.res.Cells = append(r.res.Cells, sos.Cell{Of: of, What: what, Unit: unit, Value: row.Value, P25: row.P25, P75: row.P75, N: row.N, Thesis: thesis, Marked: row.Marked})
	r.opt.Log("%s: %s, %s: %s %s", r.res.Name, of, what, bench.Short(row.Value), unit)
}

// gigabits and megabits put rates of bits a second into larger units, percents parts of one.
func gigabits(rate float64) float64 { return rate / 1e9 }
func megabits(rate float64) float64 { return rate / 1e6 }

// boosted runs f with the rig of the boost benchmark, and keeps its notes.
func (r *sosRun) boosted(ctx context.Context, f func(*rig) error) error {
	var rep bench.Report
	b := &rig{lab: r.lab, opt: Options{Each: r.opt.Each, Runs: r.opt.Runs, Quick: r.opt.Quick, Log: r.opt.Log}, rep: &rep}
	if err := b.begin(ctx); err != nil {
		return err
	}
	defer b.end()
	err := f(b)
	r.res.Notes = append(r.res.Notes, rep.Notes...)
	return err
}

// sosPath is the file of the boost benchmark's lab with a path between the agents, and another link of the client's.
func sosPath(client, path string) string {
	return strings.NewReplacer("[c1, x]", client, "PATH", path).Replace(longPathLab)
}

// sosLongPath is the long path of the boost benchmark.
const sosLongPath = "{ends: [x, y], delay: 25ms, rate: 500Mbit, queue: 3125KB, seed: 1}"
