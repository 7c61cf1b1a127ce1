package labcmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/emud"
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
	command.AllowEmptyArguments(cmd, "a handler's value")
	name, out := addLab(cmd), output.Add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l, err := lab.Open(*name, lab.Options{})
		if err != nil {
			return labs.Fail(err)
		}
		switch {
		case len(args) == 1:
			all, err := l.Engine().Handlers(cmd.Context(), args[0])
			if err != nil {
				return labs.Fail(err)
			}
			return printHandlers(cmd.OutOrStdout(), out, all)
		case len(args) == 3 && args[1] == "get":
			value, err := l.Engine().Get(cmd.Context(), args[0], args[2])
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), value)
			}
			return labs.Fail(err)
		case len(args) == 4 && args[1] == "set":
			return labs.Fail(l.Engine().Set(cmd.Context(), args[0], args[2], args[3]))
		}
		return exit.Failf(exit.Usage, "", "lab node: expected NODE, NODE get HANDLER or NODE set HANDLER VALUE")
	}
	return cmd
}

func printHandlers(w io.Writer, out *output.Flag, all []emud.HandlerState) error {
	if out.JSON() {
		return plainJSON(w, all)
	}
	return output.Draw(w, func(t *output.Table) {
		t.Row("HANDLER", "ALLOWS", "IS")
		for _, h := range all {
			t.Row(h.Name, allows(h), h.Doc)
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
