package commandtest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
)

// Words are a line's, as a shell would see them.
func Words(line string) (all []string) {
	for _, w := range strings.Fields(line) {
		all = append(all, strings.ReplaceAll(w, "''", ""))
	}
	return all
}

// A line that is not refused as it should be must not do what it says: of commands that are not harmless it
// would start daemons or take labs down.
func tame(cmd *cobra.Command, harmless []string) {
	for _, sub := range cmd.Commands() {
		if !slices.Contains(harmless, sub.Name()) {
			tame(sub, harmless)
			if sub.RunE != nil {
				sub.RunE = func(*cobra.Command, []string) error { return errors.New("it would have run") }
			}
		}
	}
}

// Refused fails where one of the lines is not refused as a mistake, in one sentence of our words. What stands behind => is
// said. Commands that are not in harmless groups do nothing here if they run.
func Refused(t *testing.T, lines string, fresh func() *cobra.Command, harmless ...string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		typed, want, _ := strings.Cut(line, "=>")
		var out, errs bytes.Buffer
		root := fresh()
		tame(root, harmless)
		code := command.Run(root, Words(typed), strings.NewReader(""), &out, &errs, nil)
		said := errs.String()
		if code != int(exit.Usage) || !strings.Contains(said, strings.TrimSpace(want)) {
			t.Errorf("%s %s: exit code %d, %q; want %d and %q", root.CommandPath(), typed, code, said, exit.Usage, strings.TrimSpace(want))
		}
		for _, never := range []string{"strconv.", "arg(s)", "flag(s)", "marshal message", "if any flags in the group"} {
			if strings.Contains(said, never) {
				t.Errorf("%s %s says %q: a library's words", root.CommandPath(), typed, said)
			}
		}
		if n := strings.Count(said, "\n"); n > 2 {
			t.Errorf("%s %s: %d lines: %q", root.CommandPath(), typed, n, said)
		}
	}
}
