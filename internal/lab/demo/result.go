package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A Result is one of the demo's claims and what was seen of it.
type Result struct {
	Step     string // "a"
	Claim    string
	Requests int
	Failed   int
	Seen     string // in words and numbers
	Holds    bool
	Told     []string // what the controller told meanwhile of who is ready
}

// hear takes what the controller told during the step. Where no instance is to be not ready the row says which were: their
// requests went elsewhere while they counted. stops: one is to be.
func (r *Result) hear(told []*apiv1.Event, stops bool) {
	for _, e := range told {
		r.Told = append(r.Told, fmt.Sprintf("%s  %s  %s", time.UnixMilli(e.UnixMs).Format("15:04:05.000"), e.Kind, e.Text))
	}
	if held := unready(told); len(held) > 0 && !stops {
		r.Seen += "; held not ready meanwhile: " + strings.Join(held, ", ")
	}
}

// ofInstances are the events since then of who serves, and whether they are ready.
func ofInstances(all []*apiv1.Event, since time.Time) (told []*apiv1.Event) {
	for _, e := range all {
		if e.UnixMs >= since.UnixMilli() && strings.HasPrefix(e.Kind, "instance.") {
			told = append(told, e)
		}
	}
	return told
}

// writeTable prints the results for people.
func writeTable(w io.Writer, results []Result) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\tWHAT\tREQUESTS\tFAILED\tHOLDS\tSEEN")
	for _, r := range results {
		holds := "yes"
		if !r.Holds {
			holds = "NO"
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%s\t%s\n", r.Step, r.Claim, r.Requests, r.Failed, holds, r.Seen)
	}
	tw.Flush()
	for _, r := range results {
		if r.Holds {
			continue
		}
		fmt.Fprintf(w, "\n%s. %s does not hold. The controller told meanwhile:\n", r.Step, r.Claim)
		if len(r.Told) == 0 {
			fmt.Fprintln(w, "   nothing")
		}
		for _, line := range r.Told {
			fmt.Fprintln(w, "   "+line)
		}
	}
}

// unready are the servers of which it was told that they were not ready.
func unready(told []*apiv1.Event) (names []string) {
	for _, e := range told {
		if host := e.Attrs["host"]; e.Kind == "instance.unready" && !slices.Contains(names, host) {
			names = append(names, host)
		}
	}
	slices.Sort(names)
	return names
}

// shares prints "33.3 : 66.7 : 0.0 %", in the order of the servers.
func shares(byServer map[string]int) string {
	total := 0
	for _, n := range byServer {
		total += n
	}
	var parts []string
	for _, s := range servers {
		parts = append(parts, fmt.Sprintf("%.1f", 100*float64(byServer[s])/float64(max(total, 1))))
	}
	return strings.Join(parts, " : ") + " %"
}

// ms prints a duration in milliseconds with one decimal.
func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
