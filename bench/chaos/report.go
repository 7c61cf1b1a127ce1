package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"scaffold.dev/scaffold/bench"
)

// Events is how many events were carried out.
func (r *Result) Events() (n int) {
	for _, b := range r.Batches {
		n += len(b.Done)
	}
	return n
}

// A kind sums up the batches of one kind of trouble.
type kind struct {
	Kind    string  `json:"kind"`
	Batches int     `json:"batches"`
	Events  int     `json:"events"`
	Flows   int     `json:"flows"`         // that were live when the network was whole
	P50     float64 `json:"healed_p50_ms"` // from then until each went on
	P99     float64 `json:"healed_p99_ms"`
	Max     float64 `json:"healed_max_ms"`
	Stood   float64 `json:"standstill_max_ms"` // of a flow, from the first event on
	Odd     int     `json:"odd"`
	healed  []float64
}

// kinds sums up by kind, in the order of the table of kinds. A batch of two kinds counts for both.
func (r *Result) kinds() (all []*kind) {
	for _, d := range drawers() {
		k := &kind{Kind: d.kind}
		for _, b := range r.Batches {
			if slices.Contains(strings.Split(b.Kind, and), d.kind) {
				k.add(b)
			}
		}
		if k.Batches > 0 {
			all = append(all, k)
		}
	}
	return all
}

func (k *kind) add(b BatchResult) {
	k.Batches, k.Events, k.Flows, k.Odd = k.Batches+1, k.Events+len(b.Done), k.Flows+len(b.Healed), k.Odd+len(b.Look.Odd)
	k.Stood = max(k.Stood, b.Stood)
	if k.healed = append(k.healed, b.Healed...); len(k.healed) > 0 {
		k.P50, k.P99, k.Max = bench.Quantile(k.healed, 0.5), bench.Quantile(k.healed, 0.99), bench.Quantile(k.healed, 1)
	}
}

// WriteTable writes what happened for people.
func (r *Result) WriteTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TROUBLE\tTIMES\tEVENTS\tFLOWS\tHEALED P50\tP99\tMAX\tSTOOD STILL\tODD")
	for _, k := range r.kinds() {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%.0f ms\t%.0f ms\t%.0f ms\t%.0f ms\t%d\n", k.Kind, k.Batches, k.Events, k.Flows, k.P50, k.P99, k.Max, k.Stood, k.Odd)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	c := r.count
	fmt.Fprintf(w, "\nseed %d: %d events in %.0f s; %d flows ended in peace, %d were reset by a killed or shed server, %d are odd\n",
		r.Seed, r.Events(), r.Took.Seconds(), c.fine, c.excused, c.condemned)
	fmt.Fprintf(w, "%.1f MB checked; %d datagrams asked, %d never answered, %d refused; %d connects failed while something was broken\n",
		float64(c.bytes)/1e6, c.asked, c.lost, c.failures, c.refused)
	fmt.Fprintf(w, "unmodified programs (%s): %d runs ended well, %d did not, as an event explains\n", strings.Join(r.Programs, ", "), c.errands, c.errandsFailed)
	if len(r.Odd) == 0 {
		fmt.Fprintln(w, "nothing odd")
	}
	for _, o := range r.Odd {
		fmt.Fprintln(w, "ODD:", o.say())
	}
	for _, s := range r.Histories {
		fmt.Fprintln(w, "\n"+s)
	}
	return nil
}

// WriteJSON writes the same for programs.
func (r *Result) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	odd := []string{}
	for _, o := range r.Odd {
		odd = append(odd, o.say())
	}
	return enc.Encode(map[string]any{
		"seed": r.Seed, "events": r.Events(), "seconds": r.Took.Seconds(), "kinds": r.kinds(), "odd": odd, "histories": r.Histories,
		"flows":     map[string]int{"fine": r.count.fine, "reset": r.count.excused, "odd": r.count.condemned, "refused": r.count.refused},
		"datagrams": map[string]uint64{"asked": r.count.asked, "lost": r.count.lost, "refused": r.count.failures}, "bytes": r.count.bytes,
		"programs": map[string]any{"names": r.Programs, "fine": r.count.errands, "failed": r.count.errandsFailed},
	})
}

// WriteSchedule prints what would happen.
func WriteSchedule(w io.Writer, batches []Batch) error {
	events := 0
	for i, b := range batches {
		if _, err := fmt.Fprintf(w, "%d %s\n", i+1, b.Kind); err != nil {
			return err
		}
		for _, e := range b.Events {
			fmt.Fprintf(w, "  %6.3fs %s\n", e.At.Seconds(), e.Do)
		}
		events += len(b.Events)
	}
	_, err := fmt.Fprintf(w, "%d events\n", events)
	return err
}
