package labcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/links"
)

func labStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status [NAME]",
		Short:   "Show the labs that are up: nodes, processes, links",
		Example: "  scaffold lab status\n  scaffold lab status web -o json\n  scaffold lab status --lab web",
	}
	out, name := output.Add(cmd.Flags()), addLab(cmd)
	cmd.Args = cobra.MatchAll(cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error {
		if *name != "" && len(args) > 0 && args[0] != *name {
			return fmt.Errorf("%s: %q, or --lab %s: which one?", cmd.CommandPath(), args[0], *name)
		}
		return nil
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names := args
		if *name != "" {
			names = []string{*name}
		}
		if len(names) == 0 {
			var err error
			if names, err = lab.List(lab.Options{}); err != nil {
				return labs.Fail(err)
			}
		}
		found := []*lab.Status{}
		for _, name := range names {
			l, err := lab.Open(name, lab.Options{})
			if err != nil {
				return labs.Fail(err)
			}
			s, err := l.Status()
			if err != nil {
				return err
			}
			found = append(found, s)
		}
		if out.JSON() {
			return plainJSON(cmd.OutOrStdout(), found)
		}
		if len(found) == 0 {
			fmt.Fprintln(cmd.OutOrStdout(), "no lab is up")
		}
		for _, s := range found {
			if err := drawLab(cmd.OutOrStdout(), s); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// plainJSON prints what is not a message of the API.
func plainJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func drawLab(w io.Writer, s *lab.Status) error {
	fmt.Fprintf(w, "lab %s (%s, %s), files in %s\n\n", s.Name, s.File, s.Phase, s.Dir)
	err := output.Draw(w, func(t *output.Table) {
		t.Row("NODE", "KIND", "PROCESS", "STATE", "PIDS", "SERVICE")
		for _, n := range s.Nodes {
			drawLabNode(t, n)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	return output.Draw(w, func(t *output.Table) {
		t.Row("LINK", "INTERFACES", "STATE", "MTU", "PARAMETERS")
		for _, l := range s.Links {
			t.Row(strings.Join(l.Ends[:], " - "), strings.Join(l.Interfaces[:], " - "), l.State, l.MTU, linkParameters(l))
		}
	})
}

// linkParameters is what a link does to packets; where the directions differ, first that from the
// first end.
func linkParameters(l links.Status) string {
	switch e := l.Emulated; {
	case e == nil && l.Rate > 0:
		return "rate " + emu.FormatRate(l.Rate)
	case e == nil:
		return ""
	case e[0] != e[1]:
		return "emulated: " + orNone(e[0]) + " / " + orNone(e[1])
	default:
		return "emulated: " + orNone(e[0])
	}
}

func drawLabNode(t *output.Table, n lab.NodeStatus) {
	if len(n.Processes) == 0 {
		t.Row(n.Name, n.Kind, n.Program, n.State, "", "")
	}
	for i, p := range n.Processes {
		name, kind := n.Name, n.Kind
		if i > 0 {
			name, kind = " ", " "
		}
		t.Row(name, kind, p.Name, p.State, somePIDs(p.PIDs), p.Service)
	}
}

// somePIDs shows the first few.
func somePIDs(pids []int) string {
	const shown = 3
	text := strings.Trim(fmt.Sprint(pids[:min(shown, len(pids))]), "[]")
	if len(pids) > shown {
		text += fmt.Sprintf(" and %d more", len(pids)-shown)
	}
	return text
}
