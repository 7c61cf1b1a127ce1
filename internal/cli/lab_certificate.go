package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fidelity"
	"scaffold.dev/scaffold/internal/lab"
)

func labCertificateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certificate",
		Short: "Say whether the emulated network does what was asked of it",
		Long: `The certificate compares, for each direction of each emulated link since it got its parameters, what was asked
for with what was delivered, says how well the engine's threads kept up, and judges. docs/emu.md explains it.`,
		Example: "  scaffold lab certificate\n  scaffold lab certificate --strict",
		Args:    cobra.NoArgs,
	}
	name, out, strict := addLab(cmd), addOutput(cmd.Flags()), addStrict(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l, err := lab.Open(*name, lab.Options{})
		if err != nil {
			return labFail(err)
		}
		c, err := l.Certificate(cmd.Context())
		if err != nil {
			return labFail(err)
		}
		if out.json() {
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
	return failf(ExitUnmet, "fewer or slower links, or a machine with more to give", "the emulator was the bottleneck: %s", c.Reasons[0])
}

// rowsShown bounds how many directions of links a certificate shows to people: those with the most packets.
const rowsShown = 40

func printCertificate(w io.Writer, c *fidelity.Certificate) error {
	err := drawTable(w, func(t *table) {
		t.row("LINK", "ASKED", "PACKETS", "RATE", "LATE P50/P99/MAX", "LOSS ASKED/GOT", "FULL", "MISSING")
		for _, r := range busiest(c.Links) {
			t.row(r.From+"->"+r.To, orNone(r.Asked), fmt.Sprint(r.Packets), deliveredRate(r),
				fmt.Sprintf("%v/%v/%v", r.Late.P50, r.Late.P99, r.Late.Max),
				fmt.Sprintf("%.3g%%/%.3g%%", 100*r.LossAsked, 100*r.Loss), fmt.Sprint(r.Overflow), fmt.Sprint(r.Missing))
		}
	})
	if err != nil {
		return err
	}
	for i, s := range c.Shards {
		fmt.Fprintf(w, "thread %d: %d routers, %d interfaces, busy %.0f%%, frames waited %v (p99), stood still %d times%s\n",
			i, s.Routers, s.Edges, 100*s.Busy, s.Turns.P99.Round(time.Microsecond), s.Pauses, ordinary(s))
	}
	if c.Faithful {
		_, err := fmt.Fprintf(w, "faithful: late by at most %v (p99), rates within %.2g%%, frames read within %v (p99)\n", c.Bounds.LateP99, 100*c.Bounds.Rate, c.Bounds.Turn)
		return err
	}
	fmt.Fprintln(w, "NOT faithful: the emulator was the bottleneck")
	for _, r := range c.Reasons {
		fmt.Fprintln(w, "  "+r)
	}
	return nil
}

// busiest are the directions with the most packets, in their order.
func busiest(all []fidelity.Row) []fidelity.Row {
	if len(all) <= rowsShown {
		return all
	}
	byPackets := slices.SortedStableFunc(slices.Values(all), func(a, b fidelity.Row) int { return cmp.Compare(b.Packets, a.Packets) })
	return byPackets[:rowsShown]
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
