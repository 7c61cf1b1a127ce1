package diagnosis

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/views"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/health"

	judged "scaffold.dev/scaffold/internal/operate/verdict"
)

// StatusCommand is `scaffold status`.
func StatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether the network is well: each problem, and the command that comes next",
		Long: `Status says OK, or each problem of the network, the worst first, with the command that comes next; then
the state of the network in a few lines. The daemons of this machine are asked too, so that it says what
it can where no controller answers.

It ends with 0 where nothing is wrong, with 8 where there are only warnings, with 7 where something is
critical: somebody loses service, or nothing can be changed or saved.`,
		Example: "  scaffold status\n  scaffold status --lab web\n  scaffold status -o json | jq -r '.problems[] | .severity + \" \" + .what'",
		Args:    cobra.NoArgs,
	}
	a := remote.AddAdmin(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, err := askFindings(cmd.Context(), a.Remote)
		if err != nil {
			return err
		}
		s := f.merged()
		if a.JSON() {
			err = output.WriteJSON(cmd.OutOrStdout(), s, "  ")
		} else {
			err = drawVerdict(cmd.OutOrStdout(), f, s)
		}
		if err == nil && s.Verdict != health.OK.String() {
			return verdictCode(health.ParseSeverity(s.Verdict))
		}
		return err
	}
	return cmd
}

// verdictCode ends with the code for how bad it is; all has been said.
func verdictCode(s health.Severity) error {
	if s == health.Critical {
		return exit.Silent(exit.Unmet)
	}
	return exit.Silent(exit.Warned)
}

// drawVerdict prints the judgement first: the rest is for those who look further.
func drawVerdict(w io.Writer, f *findings, s *apiv1.Status) error {
	fmt.Fprintln(w, summary(s.Problems))
	for _, p := range s.Problems {
		fmt.Fprintln(w)
		fmt.Fprintf(w, "%-8s  %s%s\n", strings.ToUpper(p.Severity), p.What, lasting(p.Since))
		fmt.Fprintf(w, "          next: %s\n", p.Next)
	}
	for _, note := range f.notes {
		fmt.Fprintf(w, "\n(%s)\n", note)
	}
	fmt.Fprintln(w)
	return output.Draw(w, func(t *output.Table) {
		if f.status == nil {
			t.Row("asked", strings.Join(f.asked, ", "))
			t.Row("leader", output.OrElse(f.leader, "nobody, as far as is known here"))
			return
		}
		drawStatus(t, f.status, strings.Join(f.asked, ", "))
	})
}

// summary is the verdict in a line.
func summary(all []*apiv1.Problem) string {
	counts := map[string]uint32{}
	for _, p := range all {
		counts[p.Severity]++
	}
	critical, warnings := counts[health.Critical.String()], counts[health.Warning.String()]
	switch {
	case critical > 0 && warnings > 0:
		return fmt.Sprintf("NOT WELL: %d critical, %s", critical, command.Count(warnings, "warning"))
	case critical > 0:
		return fmt.Sprintf("NOT WELL: %d critical", critical)
	case warnings > 0:
		return "OK, with " + command.Count(warnings, "warning")
	}
	return "OK: nothing is wrong"
}

// lasting is for how long something is so.
func lasting(since string) string {
	at, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return ""
	}
	return " (" + output.Short(max(0, time.Since(at))) + ")"
}

func drawStatus(t *output.Table, s *apiv1.Status, endpoint string) {
	t.Row("network", s.Network)
	t.Row("asked", endpoint)
	t.Row("leader", s.Leader)
	t.Row("up for", output.Age(s.StartedUnixMs))
	t.Row("version", s.Version)
	t.Row("trust", views.Trust(s.Trust))
	t.Row("names", "."+s.Domain)
	t.Row("services in", s.GetSpace().GetServices())
	t.Row("locators in", s.GetSpace().GetAs())
	t.Row("identities in", s.GetSpace().GetIdentities())
	rules := "generation " + views.Generation(s.Generation)
	if s.Settling {
		rules += "; not sent yet: it waits for hosts and routers that were here before it led"
	}
	t.Row("rules", rules)
	for i, c := range s.Controllers {
		label := ""
		if i == 0 {
			label = "controllers"
		}
		t.Row(label, c.Name+" "+c.State)
	}
	if s.Restored != "" {
		t.Row("restored", fmt.Sprintf("the state is that of %s; %s not in it", s.Restored, command.Counts(s.UnknownServices, "service that a host serves is", "services that hosts serve are")))
	}
	t.Row("hosts", s.Hosts)
	t.Row("routers", s.Routers)
	t.Row("services", fmt.Sprintf("%d with %s", s.Services, command.Count(s.Instances, "instance")))
}

// merged is the state of the network with all that was found wrong.
func (f *findings) merged() *apiv1.Status {
	s := f.status
	if s == nil {
		s = &apiv1.Status{Leader: f.leader}
	}
	s.Problems = judged.Merge(f.problems...)
	s.Verdict = judged.Worst(s.Problems).String()
	return s
}
