package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// leaves calls do with every command that does something and is shown.
func leaves(cmd *cobra.Command, do func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	if !cmd.HasSubCommands() && cmd.RunE != nil {
		do(cmd)
	}
	for _, sub := range cmd.Commands() {
		leaves(sub, do)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	leaves(New(), func(cmd *cobra.Command) {
		if cmd.Short == "" || !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: want a line in Short and its own path in Example, so that --help can be followed", cmd.CommandPath())
		}
	})
}

func TestHelpListsEveryExitCode(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main([]string{"help", "exit-codes"}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for code := ExitOK; code <= ExitUnmet; code++ {
		if !strings.Contains(out.String(), fmt.Sprintf("\n  %d  ", code)) {
			t.Errorf("exit code %d is not explained in\n%s", code, out.String())
		}
	}
}
