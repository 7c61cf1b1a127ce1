package labcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fidelity"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/lab"
)

func labCertificateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certificate",
		Short: "Say whether the emulated network does what was asked of it",
		Long: `The certificate compares, for each direction of each emulated link since it got its parameters, what was asked
for with what was delivered, says how well the engine's threads kept up, and judges. Directions that did not do what
was asked of them come first. docs/emu.md explains it.

With --reset it is made of what was until now, and counting begins anew: to judge an experiment without what was before.`,
		Example: "  scaffold lab certificate\n  scaffold lab certificate --strict\n  scaffold lab certificate --reset",
		Args:    cobra.NoArgs,
	}
	name, out, strict := addLab(cmd), output.Add(cmd.Flags()), addStrict(cmd)
	reset := cmd.Flags().Bool("reset", false, "begin to count anew after this certificate")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l, err := lab.Open(*name, lab.Options{})
		if err != nil {
			return labs.Fail(err)
		}
		certificate := l.Engine().Certificate
		if *reset {
			certificate = l.Engine().CertificateAnew
		}
		c, err := certificate(cmd.Context())
		if err != nil {
			return labs.Fail(err)
		}
		if out.JSON() {
			err = plainJSON(cmd.OutOrStdout(), c)
		} else {
			err = printCertificate(cmd.OutOrStdout(), c)
		}
		if err == nil && *strict {
			err = demand(c)
		}
		return err
	}
	return cmd
}

// addStrict is the flag that makes an unfaithful emulation an error.
func addStrict(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("strict", false, "exit code 7 if the emulator, and not the network, was the bottleneck")
}

// demand is an error unless the certificate says that the emulation was faithful.
func demand(c *fidelity.Certificate) error {
	if c == nil || c.Faithful {
		return nil
	}
	return exit.Failf(exit.Unmet, "fewer or slower links, or a machine with more to give", "the emulator was the bottleneck: %s", c.Reasons[0])
}

// rowsShown and reasonsShown bound what a certificate shows to people of thousands of links: first what failed, then
// the directions with the most packets.
const (
	rowsShown    = 40
	reasonsShown = 20
)

func printCertificate(w io.Writer, c *fidelity.Certificate) error {
	err := output.Draw(w, func(t *output.Table) {
		t.Row("LINK", "OK", "ASKED", "FOR", "PACKETS", "RATE", "LATE P50/P99/P99.9/MAX", "LOSS ASKED/GOT", "FULL", "MISSING")
		for _, r := range worstFirst(c.Links) {
			t.Row(r.Name(), holds(r), orNone(r.Asked), countedFor(r.Seconds), fmt.Sprint(r.Packets), deliveredRate(r), lateness(r.Late),
				fmt.Sprintf("%.3g%%/%.3g%%", 100*r.LossAsked, 100*r.Loss), fmt.Sprint(r.Overflow), fmt.Sprint(r.Missing))
		}
	})
	if err != nil {
		return err
	}
	if more := len(c.Links) - rowsShown; more > 0 {
		fmt.Fprintf(w, "and %d more directions with fewer packets; -o json shows all\n", more)
	}
	for i, s := range c.Shards {
		fmt.Fprintf(w, "thread %d: %s, %s, busy %.0f%%, stood still %s%s\n", i, command.Count(uint32(s.Routers), "router"),
			command.Count(uint32(s.Edges), "interface"), 100*s.Worked, output.Times(s.Pauses), ordinary(s))
	}
	if !c.Since.IsZero() {
		fmt.Fprintf(w, "since %s:\n", c.Since.Local().Format("2006-01-02 15:04:05"))
	}
	if c.Faithful {
		_, err := fmt.Fprintf(w, "faithful: 99%% of packets late by at most %v (%v where they enter), rates within %.2g%%\n", c.Bounds.LateP99, c.Bounds.Turn, 100*c.Bounds.Rate)
		return err
	}
	fmt.Fprintln(w, "NOT faithful: the emulator was the bottleneck")
	for _, r := range c.Reasons[:min(len(c.Reasons), reasonsShown)] {
		fmt.Fprintln(w, "  "+r)
	}
	if more := len(c.Reasons) - reasonsShown; more > 0 {
		fmt.Fprintf(w, "  and %d more reasons; -o json shows all\n", more)
	}
	return nil
}

// worstFirst are the directions to show: all where they are few, else those with faults and then those with the most packets.
func worstFirst(all []fidelity.Row) []fidelity.Row {
	if len(all) <= rowsShown {
		return all
	}
	faulty := func(r fidelity.Row) int { return min(len(r.Faults), 1) }
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b fidelity.Row) int {
		return cmp.Or(cmp.Compare(faulty(b), faulty(a)), cmp.Compare(b.Packets, a.Packets))
	})
	return sorted[:rowsShown]
}

// holds says whether a direction did what was asked of it.
func holds(r fidelity.Row) string {
	if len(r.Faults) > 0 {
		return "NO"
	}
	return "yes"
}

// countedFor is how long packets were counted.
func countedFor(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// lateness sums up by how much packets left too late, which has steps of an eighth.
func lateness(s emu.LateStats) string {
	if s.Packets == 0 {
		return "-"
	}
	short := func(d time.Duration) time.Duration {
		if d < time.Millisecond {
			return d.Round(time.Microsecond)
		}
		return d.Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%v/%v/%v/%v", short(s.P50), short(s.P99), short(s.P999), short(s.Max))
}

// deliveredRate is the rate that was measured, where there was one to measure.
func deliveredRate(r fidelity.Row) string {
	if r.Rate.Windows == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4g Mbit/s", r.Rate.Mean/1e6)
}

// ordinary says that a thread has to wait for others.
func ordinary(s emu.ShardStats) string {
	if s.Realtime {
		return ""
	}
	return ", an ordinary thread"
}
