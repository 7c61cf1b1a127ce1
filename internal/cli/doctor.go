package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/doctor"
	"scaffold.dev/scaffold/sid"
)

func doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say whether this machine can run Scaffold, and what is in its way",
		Long: `Doctor tries what Scaffold needs of the kernel and looks for what breaks its flows: filters that
track connections, reverse-path checks, clashing addresses, small MTUs. For each finding it says
what is there, what it costs and what to do. It looks at the network namespace that it runs in, and
changes nothing.

It ends with 0 if hosts and routers can run here, at whatever cost; with 6 if something is missing;
with 7 if something that is configured here is in the way.`,
		Example: `  sudo scaffold doctor
  sudo scaffold doctor --all
  sudo ip netns exec red scaffold doctor
  sudo scaffold doctor -o json | jq '.findings[] | select(.state != "ok")'`,
		Args: cobra.NoArgs,
	}
	out := addOutput(cmd.Flags())
	all := cmd.Flags().Bool("all", false, "also print what is as it should be")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		report := doctor.Examine(doctor.Here(sid.DefaultSpace()))
		if err := printReport(cmd.OutOrStdout(), report, out.json(), *all); err != nil {
			return err
		}
		return verdict(report.Verdict)
	}
	return cmd
}

func verdict(s doctor.State) error {
	switch s {
	case doctor.Missing:
		return failf(ExitMissing, "", "Scaffold cannot run here: see \"missing\" above")
	case doctor.InWay:
		return failf(ExitUnmet, "", "flows will break here: see \"in way\" above")
	}
	return nil
}

func printReport(w io.Writer, report doctor.Report, asJSON, all bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	good := 0
	for _, f := range report.Findings {
		if f.State == doctor.Good {
			good++
			if !all {
				continue
			}
		}
		printFinding(w, f)
	}
	_, err := fmt.Fprintf(w, "%d of %d as they should be%s\n", good, len(report.Findings), map[bool]string{false: "; --all prints them too"}[all])
	return err
}

func printFinding(w io.Writer, f doctor.Finding) {
	fmt.Fprintf(w, "%-8s %s: %s: %s\n", f.State, f.Area, f.Name, f.Found)
	if f.Cost != "" {
		fmt.Fprintf(w, "         costs: %s\n", f.Cost)
	}
	if f.Do != "" {
		fmt.Fprintf(w, "         do:    %s\n", f.Do)
	}
}
