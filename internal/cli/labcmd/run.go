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
	"scaffold.dev/scaffold/internal/lab/timeline"
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
	name, plane := labs.AddName(cmd), labs.AddPlane(cmd)
	out := output.Add(cmd.Flags())
	strict := addStrict(cmd)
	dir := cmd.Flags().String("plot", "", "also write the result and its plot into this directory, as NAME.json, NAME.svg and NAME.png")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := loadLab(cmd.Context(), args[0], *name)
		if err == nil {
			err = labs.SetPlane(f, *plane)
		}
		if err != nil {
			return err
		}
		result, err := lab.Run(cmd.Context(), f, labs.Progress(cmd, false))
		var unprinted error
		if result != nil {
			unprinted = printResult(cmd.OutOrStdout(), out, result)
		}
		if result != nil && *dir != "" {
			if _, err := result.Save(*dir); err != nil {
				return labs.Fail(err)
			}
		}
		switch {
		case err != nil:
			return labs.Fail(err)
		case result.Failed():
			return exit.Failf(exit.Unmet, "", "lab %s: a step or a measurement failed", f.Name)
		case *strict:
			if err := demand(result.Certificate); err != nil {
				return err
			}
		}
		return unprinted
	}
	return cmd
}

func printResult(w io.Writer, out *output.Flag, r *timeline.Result) error {
	if out.JSON() {
		return plainJSON(w, r)
	}
	err := output.Draw(w, func(t *output.Table) {
		t.Row("AT", "BEGAN", "TOOK", "DO", "RESULT")
		for _, s := range r.Steps {
			t.Row(seconds(s.At), seconds(s.Began), seconds(s.Took), s.Do, orOK(s.Error))
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
