package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab"
)

func labStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status [NAME]",
		Short:   "Show the labs that are up: nodes, processes, links",
		Example: "  scaffold lab status\n  scaffold lab status web -o json\n  scaffold lab status --lab web",
		Args:    cobra.MaximumNArgs(1),
	}
	out, name := addOutput(cmd.Flags()), addLab(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names := args
		if *name != "" && len(args) > 0 && args[0] != *name {
			return failf(ExitUsage, "", "lab status: %q and --lab %s: which one?", args[0], *name)
		}
		if *name != "" {
			names = []string{*name}
		}
		if len(names) == 0 {
			var err error
			if names, err = lab.List(lab.Options{}); err != nil {
				return labFail(err)
			}
		}
		labs := []*lab.Status{}
		for _, name := range names {
			l, err := lab.Open(name, lab.Options{})
			if err != nil {
				return labFail(err)
			}
			s, err := l.Status()
			if err != nil {
				return err
			}
			labs = append(labs, s)
		}
		if out.json() {
			return plainJSON(cmd.OutOrStdout(), labs)
		}
		if len(labs) == 0 {
			fmt.Fprintln(cmd.OutOrStdout(), "no lab is up")
		}
		for _, s := range labs {
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
	err := drawTable(w, func(t *table) {
		t.row("NODE", "KIND", "PROCESS", "STATE", "PIDS", "SERVICE")
		for _, n := range s.Nodes {
			drawLabNode(t, n)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	return drawTable(w, func(t *table) {
		t.row("LINK", "INTERFACES", "STATE", "MTU", "PARAMETERS")
		for _, l := range s.Links {
			t.row(strings.Join(l.Ends[:], " - "), strings.Join(l.Interfaces[:], " - "), l.State, l.MTU, linkParameters(l))
		}
	})
}

// linkParameters is what a link does to packets; where the directions differ, first that from the
// first end.
func linkParameters(l lab.LinkStatus) string {
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

func drawLabNode(t *table, n lab.NodeStatus) {
	if len(n.Processes) == 0 {
		t.row(n.Name, n.Kind, n.Program, n.State, "", "")
	}
	for i, p := range n.Processes {
		name, kind := n.Name, n.Kind
		if i > 0 {
			name, kind = " ", " "
		}
		t.row(name, kind, p.Name, p.State, somePIDs(p.PIDs), p.Service)
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
