package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// A Result is one of the demo's claims and what was seen of it.
type Result struct {
	Step     string // "a"
	Claim    string
	Requests int
	Failed   int
	Seen     string // in words and numbers
	Holds    bool
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
