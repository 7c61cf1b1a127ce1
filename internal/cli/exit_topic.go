package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
)

func exitCodesTopic() *cobra.Command {
	var text strings.Builder
	text.WriteString("Every command ends with one of these exit codes:\n\n")
	for _, e := range exit.Codes {
		fmt.Fprintf(&text, "  %d  %s\n", e.Code, e.Meaning)
	}
	text.WriteString("\n\"scaffold run\" and \"scaffold lab exec\" end with the exit code of the program that they ran.")
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: text.String()}
}
