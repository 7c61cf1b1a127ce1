package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/emud"
	"scaffold.dev/scaffold/internal/lab"
)

func labNodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node NODE [get HANDLER | set HANDLER VALUE]",
		Short: "Look into a router inside the engine, or change it, while it runs",
		Long: `What a router's program lets others read or write are its handlers. Without more words they are listed;
docs/emu.md says what those of the shipped programs mean.`,
		Example: "  scaffold lab node r7\n  scaffold lab node r7 get routes\n  scaffold lab node r7 set icmp-rate 10",
		Args:    cobra.RangeArgs(1, 4),
	}
	name, out := addLab(cmd), addOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l, err := lab.Open(*name, lab.Options{})
		if err != nil {
			return labFail(err)
		}
		switch {
		case len(args) == 1:
			all, err := l.Handlers(cmd.Context(), args[0])
			if err != nil {
				return labFail(err)
			}
			return printHandlers(cmd.OutOrStdout(), out, all)
		case len(args) == 3 && args[1] == "get":
			value, err := l.GetHandler(cmd.Context(), args[0], args[2])
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), value)
			}
			return labFail(err)
		case len(args) == 4 && args[1] == "set":
			return labFail(l.SetHandler(cmd.Context(), args[0], args[2], args[3]))
		}
		return failf(ExitUsage, "", "lab node: expected NODE, NODE get HANDLER or NODE set HANDLER VALUE")
	}
	return cmd
}

func printHandlers(w io.Writer, out *output, all []emud.HandlerState) error {
	if out.json() {
		return plainJSON(w, all)
	}
	return drawTable(w, func(t *table) {
		t.row("HANDLER", "ALLOWS", "IS")
		for _, h := range all {
			t.row(h.Name, allows(h), h.Doc)
		}
	})
}

func allows(h emud.HandlerState) string {
	switch {
	case h.Read && h.Write:
		return "get, set"
	case h.Write:
		return "set"
	}
	return "get"
}
