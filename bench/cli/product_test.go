package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/helper"
	"scaffold.dev/scaffold/internal/operate/obs"
)

func TestWithoutAScaffoldToMeasureItSaysHowToGetOne(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(helper.Caller, "")
	for _, name := range []string{"path", "move", "link", "crowd", "chaos"} {
		var out, errs bytes.Buffer
		code := command.Run(New(), []string{name}, strings.NewReader(""), &out, &errs, nil)
		if said := errs.String(); code != int(exit.Missing) || !strings.Contains(said, "no scaffold to measure") || !strings.Contains(said, "hint: `make`") {
			t.Errorf("%s: exit code %d, %q", name, code, said)
		}
	}
}

func TestWhatIsMeasuredIsWhoCalled(t *testing.T) {
	for _, c := range []struct{ version, note string }{{obs.Version(), ""}, {"v0.9", "of version v0.9; scaffold-bench is of version " + obs.Version()}} {
		caller := filepath.Join(t.TempDir(), "scaffold")
		script := "#!/bin/sh\n[ \"$*\" = 'version -o json' ] && echo '{\"scaffold\": \"" + c.version + "\"}'\n"
		if err := os.WriteFile(caller, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv(helper.Caller, caller)
		cmd := New()
		cmd.SetContext(t.Context())
		var errs bytes.Buffer
		cmd.SetErr(&errs)
		if path, err := product(cmd); path != caller || err != nil {
			t.Errorf("%q, %v, want %q", path, err, caller)
		}
		if said := errs.String(); said != "" != (c.note != "") || !strings.Contains(said, c.note) {
			t.Errorf("version %s: %q, want %q", c.version, said, c.note)
		}
	}
}

// This binary is no scaffold: a benchmark that took it for one would start these tests as daemons, and each would do so again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(int(exit.Missing))
	}
	os.Exit(m.Run())
}
