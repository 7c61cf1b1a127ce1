package commandtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/command"
)

// Switches fails where a command has a flag that is said or left out, and it is not decided which flags would go unheard
// beside it: in a line of lines, behind =>. Skip leaves commands out.
func Switches(t *testing.T, root *cobra.Command, lines string, skip func(path string) bool) {
	t.Helper()
	decided := map[string][]string{}
	for line := range strings.Lines(lines) {
		of, excludes, _ := strings.Cut(strings.TrimSpace(line), " => ")
		decided[of] = strings.Fields(excludes)
	}
	found := map[string]bool{}
	check := func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "scaffold ")
		if skip != nil && skip(path) {
			return
		}
		var pairs [][2]string
		for pair := range strings.SplitSeq(cmd.Annotations[command.Excluding], ",") {
			a, b, _ := strings.Cut(pair, " ")
			pairs = append(pairs, [2]string{a, b}, [2]string{b, a})
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "bool" || f.Name == "help" || f.Hidden {
				return
			}
			key := path + " --" + f.Name
			if group, _, _ := strings.Cut(path, " "); decided[key] == nil {
				key = group + " --" + f.Name // for all of the group
			}
			want, ok := decided[key]
			if found[key] = true; !ok {
				t.Errorf("scaffold %s --%s: which flags would go unheard beside it? Say so in this test, and by exclusive", path, f.Name)
			}
			for _, other := range want {
				if !slices.Contains(pairs, [2]string{f.Name, other}) {
					t.Errorf("scaffold %s: --%s and --%s are not declared to exclude each other", path, f.Name, other)
				}
			}
			for _, p := range pairs {
				if p[0] == f.Name && !slices.Contains(want, p[1]) {
					t.Errorf("scaffold %s: --%s excludes --%s, which this test does not know", path, f.Name, p[1])
				}
			}
		})
	}
	Leaves(root, check)
	for key := range decided {
		if key != "" && !found[key] {
			t.Errorf("%s: there is no such flag", key)
		}
	}
}
