package settings

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
)

// sample is a daemon with a flag of each type that the daemons have.
type sample struct {
	name  string
	count uint32
	keep  bool
	wait  time.Duration
	ports []string
	raw   []string
}

func (s *sample) command() *cobra.Command {
	cmd := &cobra.Command{Use: "sampled", RunE: func(*cobra.Command, []string) error { return nil }}
	f := cmd.Flags()
	f.StringVar(&s.name, "name", "", "")
	f.Uint32Var(&s.count, "count", 7, "")
	f.BoolVar(&s.keep, "keep", false, "")
	f.DurationVar(&s.wait, "wait", time.Second, "")
	f.StringSliceVar(&s.ports, "port", []string{"eth0"}, "")
	f.StringArrayVar(&s.raw, "raw", nil, "")
	cmd.MarkFlagRequired("name")
	return With(cmd, func() error { return nil })
}

func runSample(t testing.TB, s *sample, text string, args ...string) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := s.command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"--config", path}, args...))
	return cmd.Execute()
}

const whole = `# a host
name: s1
count: 9
keep: true
wait: 500ms
port: [eth1, "eth2"]
raw:
  - a=1,b=2
  - c
`

func TestConfigGivesEveryKindOfFlag(t *testing.T) {
	var s sample
	if err := runSample(t, &s, whole); err != nil {
		t.Fatal(err)
	}
	if s.name != "s1" || s.count != 9 || !s.keep || s.wait != 500*time.Millisecond ||
		!slices.Equal(s.ports, []string{"eth1", "eth2"}) || !slices.Equal(s.raw, []string{"a=1,b=2", "c"}) {
		t.Errorf("the file gave %+v", s)
	}
}

func TestTypedFlagsWinOverTheFile(t *testing.T) {
	var s sample
	if err := runSample(t, &s, whole, "--name", "s2", "--keep=false", "--port", "eth5", "--wait", "3s"); err != nil {
		t.Fatal(err)
	}
	if s.name != "s2" || s.count != 9 || s.keep || s.wait != 3*time.Second || !slices.Equal(s.ports, []string{"eth5"}) {
		t.Errorf("flags and file gave %+v", s)
	}
}

func TestAnEmptyListTakesTheDefaultAway(t *testing.T) {
	var s sample
	if err := runSample(t, &s, "name: s1\nport: []\n"); err != nil || len(s.ports) != 0 {
		t.Errorf("ports %q, error %v", s.ports, err)
	}
}

func TestOneValueIsAListOfOne(t *testing.T) {
	var s sample
	if err := runSample(t, &s, "name: s1\nport: eth3\n"); err != nil || !slices.Equal(s.ports, []string{"eth3"}) {
		t.Errorf("ports %q, error %v", s.ports, err)
	}
}

func TestAnEmptyFileSetsNothing(t *testing.T) {
	for _, text := range []string{"", "# nothing yet\n", "---\n"} {
		var s sample
		if err := runSample(t, &s, text, "--name", "s1"); err != nil || s.count != 7 {
			t.Errorf("%q: count %d, error %v", text, s.count, err)
		}
	}
}

func TestConfigErrorsNameFileAndLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"name: s1\nuplnik: x\n", `:2: unknown key "uplnik"; there is no such flag`},
		{"name: s1\nprot: [x]\n", `:2: unknown key "prot"; is "port" meant?`},
		{"name: s1\nconfig: other.yaml\n", `:2: unknown key "config"`},
		{"name: s1\ncount: many\n", `:2: count: "many" is no number that fits: invalid syntax`},
		{"name: s1\ncount: 5000000000\n", `:2: count: "5000000000" is no number that fits: value out of range`},
		{"name: s1\nkeep: \"true\"\n", `:2: keep: expected true or false, found "true"`},
		{"name: s1\nkeep: 1\n", `:2: keep: expected true or false, found "1"`},
		{"wait: soon\nname: s1\n", `:1: wait: "soon" is no time such as 500ms or 2s`},
		{"name: [a, b]\n", `:1: name: expected one value, found a list`},
		{"name:\n", `:1: name: expected a value, found nothing`},
		{"name:\n  first: a\n", `name: expected a value, found a mapping`},
		{"port:\n  - eth0\n  - [a]\n", `:3: port: expected a value, found a list`},
		{"name: a\nname: b\n", `:2: the file: "name" stands twice (first on line 1)`},
		{"- name\n", `:1: the file: expected a mapping (key: value), found a list`},
		{"name: [\n", `not YAML: `},
		{"name: s1\n---\nname: s2\n", `a second document begins here`},
		{"name: s1\ncount: x\nkeep: y\n", "\n"}, // all of them
	} {
		var s sample
		err := runSample(t, &s, c.text, "--wait", "1s")
		var known *exit.Error
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "c.yaml:") || !errors.As(err, &known) || known.Code != exit.Usage {
			t.Errorf("%q: error %v, want %q", c.text, err, c.want)
		}
	}
}

func TestConfigThatCannotBeReadIsNamed(t *testing.T) {
	for path, code := range map[string]exit.Code{"/nonexistent/c.yaml": exit.NotFound, t.TempDir(): exit.Usage, "/dev/zero": exit.Usage} {
		var s sample
		cmd := s.command()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"--config", path})
		err := cmd.Execute()
		var known *exit.Error
		if !errors.As(err, &known) || known.Code != code || !strings.Contains(err.Error(), path) {
			t.Errorf("--config %s: %v", path, err)
		}
	}
}

// FuzzConfig: whatever a file has, it is read or refused with its name, and what is read is read again
// the same.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{whole, "", "a: &x [1]\nb: *x\n", "? [a]\n: b\n", "a: b\n---\nc: d\n", "\x00", "a: !!binary x\n", "&a a: *a\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("c.yaml", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "c.yaml:") {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		var s sample
		if err := file.Apply(s.command().Flags()); err != nil && !strings.HasPrefix(err.Error(), "c.yaml:") {
			t.Fatalf("error without a place: %v", err)
		}
	})
}
