package labcmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/engine"
)

func labLinkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "link [NODE PEER | NODE->PEER] [PARAMETER VALUE...]",
		Short: "Show what an emulated link does, or change it while it carries packets",
		Long: `Links that the lab file gives a delay, loss or the like are emulated. Without parameters their present
values and counters are shown. Parameters change both directions, or with NODE->PEER the one; packets
on their way are not disturbed. docs/emu.md lists the parameters.`,
		Example: "  scaffold lab link\n  scaffold lab link s1 r1 delay 50ms loss 2%\n  scaffold lab link 's1->r1' rate 10Mbit",
	}
	name, out := addLab(cmd), output.Add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l, err := lab.Open(*name, lab.Options{})
		if err != nil {
			return labs.Fail(err)
		}
		links, err := l.Engine().Links()
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return printLinks(cmd.OutOrStdout(), out, links)
		}
		a, b, arrow := strings.Cut(args[0], "->")
		if !arrow && len(args) < 2 {
			return exit.Failf(exit.Usage, "", "which link? scaffold lab link NODE PEER")
		}
		used := 1
		if !arrow {
			b, used = args[1], 2
		}
		if len(args) > used {
			return labAct(cmd.Context(), cmd.ErrOrStderr(), *name, "link "+strings.Join(args, " "))
		}
		found := links.Between(a, b)
		if len(found) == 0 {
			return exit.Failf(exit.NotFound, "`scaffold lab status` lists the links", "lab %s has no emulated link between %q and %q", l.File.Name, a, b)
		}
		return printLinks(cmd.OutOrStdout(), out, found)
	}
	return cmd
}

func printLinks(w io.Writer, out *output.Flag, links engine.Links) error {
	if out.JSON() {
		return plainJSON(w, links)
	}
	return output.Draw(w, func(t *output.Table) {
		t.Row("LINK", "PARAMETERS", "PACKETS", "LOST", "FULL", "TWICE", "LATE", "REFUSED", "ERROR P50/P99")
		for _, l := range links {
			for i, s := range l.Lines {
				c := s.Counters
				t.Row(l.Ends[i]+"->"+l.Ends[1-i], orNone(s.Params.String()), fmt.Sprint(c.Packets), fmt.Sprint(c.Lost+c.LostBurst),
					fmt.Sprint(c.Overflow), fmt.Sprint(c.Duplicated), fmt.Sprint(c.Reordered), fmt.Sprint(s.Refused+s.Starved),
					fmt.Sprintf("%v/%v", s.Late.P50, s.Late.P99))
			}
		}
	})
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
