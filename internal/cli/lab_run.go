package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/lab"
)

func labRunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Bring a lab up, go through its timeline, measure, and take it down",
		Long: `Steps of the timeline happen at their times after the lab is up. Measurements run at their times, or
one after another when the timeline is through. The lab is taken down whatever happens; Ctrl-C ends
the run at any moment. Exit code 7: a step or a measurement failed, or, with --strict, the emulator and
not the network was the bottleneck.`,
		Example: "  scaffold lab run examples/web.yaml -o json",
		Args:    cobra.ExactArgs(1),
	}
	name, plane := addLabName(cmd), addPlane(cmd)
	out := addOutput(cmd.Flags())
	strict := addStrict(cmd)
	dir := cmd.Flags().String("plot", "", "also write the result and its plot into this directory, as NAME.json, NAME.svg and NAME.png")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := loadLab(args[0], *name)
		if err == nil {
			err = setPlane(f, *plane)
		}
		if err != nil {
			return err
		}
		result, err := lab.Run(cmd.Context(), f, progress(cmd, false))
		if result != nil {
			printResult(cmd.OutOrStdout(), out, result)
		}
		if result != nil && *dir != "" {
			if _, err := result.Save(*dir); err != nil {
				return labFail(err)
			}
		}
		switch {
		case err != nil:
			return labFail(err)
		case result.Failed():
			return failf(ExitUnmet, "", "lab %s: a step or a measurement failed", f.Name)
		case *strict:
			return demand(result.Certificate)
		}
		return nil
	}
	return cmd
}

func printResult(w io.Writer, out *output, r *lab.Result) error {
	if out.json() {
		return plainJSON(w, r)
	}
	err := drawTable(w, func(t *table) {
		t.row("AT", "BEGAN", "TOOK", "DO", "RESULT")
		for _, s := range r.Steps {
			t.row(seconds(s.At), seconds(s.Began), seconds(s.Took), s.Do, orOK(s.Error))
		}
	})
	if err != nil {
		return err
	}
	for _, s := range r.Steps {
		if s.Output != "" {
			fmt.Fprintf(w, "\n%s\n%s\n", s.Do, indent(s.Output))
		}
	}
	for _, m := range r.Measures {
		fmt.Fprintf(w, "\n%s on %s, from %s, %s long, exit code %d %s\n", m.Name, m.Node, seconds(m.Began), seconds(m.Took), m.Exit, m.Error)
		if m.Output != "" {
			fmt.Fprintln(w, indent(m.Output))
		}
	}
	if r.Certificate != nil {
		fmt.Fprintln(w)
		return printCertificate(w, r.Certificate)
	}
	return nil
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

func seconds(s float64) string { return fmt.Sprintf("%.3fs", s) }

func orOK(err string) string {
	if err == "" {
		return "ok"
	}
	return err
}
