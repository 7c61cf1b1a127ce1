package draining

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
)

// AddMode gives a command the flag of how it drains.
func AddMode(cmd *cobra.Command, mode *string) {
	cmd.Flags().StringVar(mode, "mode", "", "what becomes of live flows: wait or shed (default: as the service's policy says)")
}

// CheckMode refuses a mode that there is not.
func CheckMode(mode string) error {
	switch mode {
	case "", "wait", "shed":
		return nil
	}
	return exit.Failf(exit.Usage, "", "mode %q: want wait or shed", mode)
}
