package diagnosis

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/operate/doctor"
	"scaffold.dev/scaffold/sid"
)

// DoctorCommand is `scaffold doctor`.
func DoctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say whether this machine can run Scaffold, and what is in its way",
		Long: `Doctor tries what Scaffold needs of the kernel and looks for what breaks its flows: filters that
track connections, reverse-path checks, clashing addresses, small MTUs. For each finding it says
what is there, what it costs and what to do. It looks at the network namespace that it runs in, and
changes nothing. Daemons of this machine are asked who gets into their network: one that is open is named.

It ends with 0 if hosts and routers can run here, at whatever cost; with 6 if something is missing;
with 7 if something that is configured here is in the way.`,
		Example: `  sudo scaffold doctor
  sudo scaffold doctor --all
  sudo ip netns exec red scaffold doctor
  sudo scaffold doctor -o json | jq '.findings[] | select(.state != "ok")'`,
		Args: cobra.NoArgs,
	}
	out := output.Add(cmd.Flags())
	all := cmd.Flags().Bool("all", false, "also print what is as it should be; -o json has it anyway")
	command.Exclusive(cmd, "all output=json") // which has everything
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		m := doctor.Here(sid.DefaultSpace())
		m.Network = func() (doctor.Network, bool) { return admission(cmd.Context(), daemonsHere()) }
		report := doctor.Examine(m)
		if err := printReport(cmd.OutOrStdout(), report, out.JSON(), *all); err != nil {
			return err
		}
		return verdict(report.Verdict, os.Geteuid() == 0)
	}
	return cmd
}

func verdict(s doctor.State, root bool) error {
	switch s {
	case doctor.Missing:
		if !root {
			return exit.Failf(exit.Missing, "try `sudo scaffold doctor`", "an ordinary user sees not all of it: run this as root to check whether Scaffold can run here")
		}
		return exit.Failf(exit.Missing, "", "Scaffold cannot run here: see \"missing\" above")
	case doctor.InWay:
		return exit.Failf(exit.Unmet, "", "flows will break here: see \"in way\" above")
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
	_, err := fmt.Fprintf(w, "%d of %d things are as they should be%s\n", good, len(report.Findings), map[bool]string{false: "; --all prints them too"}[all])
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
