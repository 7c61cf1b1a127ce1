package labcmd

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/lab/emud"
)

// labEngineCommand is the process that a lab's emulated network lives in; `lab up` starts it.
func labEngineCommand(programs emud.Programs) *cobra.Command {
	if programs == nil {
		programs = emud.Shipped()
	}
	return &cobra.Command{
		Use: "engine CONFIG SOCKET", Short: "Emulate the network of a lab", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return emud.Run(cmd.Context(), programs, args[0], args[1])
		},
	}
}
