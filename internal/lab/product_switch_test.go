package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A Linux router beside a switch: directly, and through a tunnel that crosses an IP network of others. Both
// instances are reached, and what they send is whole, in packets as large as hosts make them.
func TestALinuxRouterBesideASwitch(t *testing.T) {
	nstest.Root(t)
	nstest.Program(t, "ovs-vswitchd", "openvswitch-switch")
	for _, example := range []string{"switches", "tunnel"} {
		before, name := lab.Machine(t), nstest.LabNamed(example)
		must(t, "lab", "up", "--name", name, "../../examples/"+example+".yaml")
		t.Cleanup(func() { scaffold(t, "lab", "down", name) })
		seen := map[string]bool{}
		nstest.Wait(t, "scaffold service show hello", func() error {
			seen[must(t, "lab", "exec", "--lab", name, "c1", "--", "curl", "-sS", "-m", "20", "http://hello.svc/")] = true
			if !seen["hello from s1\n"] || !seen["hello from s2\n"] {
				return fmt.Errorf("only these have answered: %v", seen)
			}
			return nil
		})
		large := strings.Repeat("Scaffold ", 1<<20)
		for _, s := range []string{"s1", "s2"} {
			if err := os.WriteFile(filepath.Join(lab.DefaultDir, name, s, "web/www/large"), []byte(large), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if out := must(t, "lab", "exec", "--lab", name, "c1", "--", "curl", "-sS", "-m", "30", "http://hello.svc/large"); out != large {
			t.Errorf("%s: %d bytes came of %d", example, len(out), len(large))
		}
		statusOf(t, name)
		must(t, "lab", "down", name)
		if after := lab.Machine(t); after != before {
			t.Errorf("%s, before:\n%s\nafter:\n%s", example, before, after)
		}
	}
}
