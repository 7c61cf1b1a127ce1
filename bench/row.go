package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"scaffold.dev/scaffold/internal/lab/plot"
)

// A Row is one measured number. Value is the median of N samples (or what Name says), P25 and P75 its
// quartiles. Aim reads "<= 500" or ">= 0.95"; Met says whether Value keeps it. Peer names what it was
// compared with, "" where the number stands alone. Marked says why nobody judges it: the emulator did not do what was asked
// of it; such a row counts as met.
type Row struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Aim   string  `json:"aim"`
	Met   bool    `json:"met"`
	N     int     `json:"n"`
	P25   float64 `json:"p25"`
	P75   float64 `json:"p75"`
	Peer  string  `json:"peer"`

	Marked string `json:"marked,omitempty"`
}

// NewRow sums samples up as their median and judges it by aim.
func NewRow(name, unit, aim, peer string, samples []float64) Row {
	r := Row{Name: name, Unit: unit, Aim: aim, Peer: peer, N: len(samples),
		Value: Quantile(samples, 0.5), P25: Quantile(samples, 0.25), P75: Quantile(samples, 0.75)}
	r.Met = meets(r.Value, aim, len(samples))
	return r.finite()
}

// QuantileRow is a Row whose value is a quantile other than the median, such as a p99 or a maximum.
func QuantileRow(name, unit, aim, peer string, samples []float64, q float64) Row {
	r := NewRow(name, unit, aim, peer, samples)
	r.Value = Quantile(samples, q)
	r.Met = meets(r.Value, aim, len(samples))
	return r.finite()
}

// finite keeps a row without samples printable: JSON has no NaN.
func (r Row) finite() Row {
	if r.N == 0 {
		r.Value, r.P25, r.P75 = 0, 0, 0
	}
	return r
}

// meets judges value by an aim; no aim is met by any value, no sample meets no aim.
func meets(value float64, aim string, n int) bool {
	if n == 0 {
		return false
	}
	var limit float64
	op, rest, _ := strings.Cut(aim, " ")
	if _, err := fmt.Sscanf(rest, "%g", &limit); err != nil {
		return aim == ""
	}
	switch op {
	case "<=":
		return value <= limit
	case ">=":
		return value >= limit
	case "=":
		return value == limit
	}
	return false
}

// A Report is what one bench command prints.
type Report struct {
	Rows  []Row    `json:"rows"`
	Notes []string `json:"notes"` // seeds, machine, what could not be measured and why

	Figure plot.Figure `json:"-"` // without panels: none
}

// WriteJSON writes the rows alone, as an array: the contract of every bench command.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r.Rows)
}

// WriteTable writes the rows for people.
func (r Report) WriteTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "WHAT\tVALUE\tP25..P75\tN\tAIM\tMET\tPEER")
	for _, row := range r.Rows {
		met := "yes"
		if !row.Met {
			met = "NO"
		}
		if row.Aim == "" {
			met = "-"
		}
		if row.Marked != "" {
			met = "marked"
		}
		fmt.Fprintf(tw, "%s\t%s %s\t%s..%s\t%d\t%s\t%s\t%s\n", row.Name, Short(row.Value), row.Unit,
			Short(row.P25), Short(row.P75), row.N, row.Aim, met, row.Peer)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "  "+n)
	}
	return nil
}

// Short prints three significant digits, and whole numbers whole.
func Short(v float64) string {
	if v == float64(int64(v)) && v < 1e7 {
		return fmt.Sprintf("%d", int64(v))
	}
	return fmt.Sprintf("%.3g", v)
}

// Missed lists the names of the rows whose aim was not kept.
func (r Report) Missed() []string {
	var names []string
	for _, row := range r.Rows {
		if !row.Met {
			names = append(names, row.Name)
		}
	}
	return names
}
