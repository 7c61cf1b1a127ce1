package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli/command/commandtest"
	"scaffold.dev/scaffold/internal/cli/exit"
)

func TestEveryCommandHasAnExample(t *testing.T) { commandtest.HaveExamples(t, New()) }

func TestHelpListsEveryExitCode(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main([]string{"help", "exit-codes"}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for code := exit.OK; code <= exit.Warned; code++ {
		if !strings.Contains(out.String(), fmt.Sprintf("\n  %d  ", code)) {
			t.Errorf("exit code %d is not explained in\n%s", code, out.String())
		}
	}
}
