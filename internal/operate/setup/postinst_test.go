package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A package's machine is one on which postinst runs: all programs that it asks are the test's.
type packaged struct{ dir, script string }

func aPackagesMachine(t *testing.T, groups string) packaged {
	t.Helper()
	text, err := os.ReadFile("../../../packaging/debian/postinst")
	if err != nil {
		t.Fatal(err)
	}
	x := packaged{dir: t.TempDir()}
	x.script = strings.ReplaceAll(string(text), "/etc/scaffold/controld.yaml", filepath.Join(x.dir, "controld.yaml"))
	for name, does := range map[string]string{
		"getent":           `grep "^$2:" ` + filepath.Join(x.dir, "groups"),
		"systemd-sysusers": "", "systemd-tmpfiles": "", "scaffold": "",
		"systemctl": "exit 1", // nothing runs
	} {
		if err := os.WriteFile(filepath.Join(x.dir, name), []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cut", "grep"} {
		at, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(at, filepath.Join(x.dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(x.dir, "groups"), []byte(groups), 0o600); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x packaged) configure(t *testing.T, former string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", x.script, "postinst", "configure", former)
	cmd.Env = []string{"PATH=" + x.dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestThePackageSaysWhatComesNext: the first time the line that makes a network; an upgrade that takes the network from
// members of the group scaffold names them, once, where a controller is installed.
func TestThePackageSaysWhatComesNext(t *testing.T) {
	const before, after = "scaffold:x:990:alice,bob\n", "scaffold:x:990:alice,bob\nscaffold-admin:x:991:\n"
	const next, rulers = "scaffold: next, on one machine: sudo scaffold install controller --network NAME\n", "in the group scaffold are alice,bob:\nscaffold: whoever is to rule the network, sudo adduser NAME scaffold-admin"
	for name, c := range map[string]struct {
		groups, former string
		controller     bool
		want, not      string
	}{
		"the first time":                 {"", "", false, next, "adduser"},
		"over a version of one group":    {before, "1.0", true, rulers, next},
		"the same, without a controller": {before, "1.0", false, "", "scaffold: "},
		"over a version of two groups":   {after, "1.1", true, "", "scaffold: "},
		"the group is empty":             {"scaffold:x:990:\n", "1.0", true, "", "scaffold: "},
	} {
		x := aPackagesMachine(t, c.groups)
		if c.controller {
			if err := os.WriteFile(filepath.Join(x.dir, "controld.yaml"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := x.configure(t, c.former); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s: it says\n%s\nwant %q, and not %q", name, got, c.want, c.not)
		}
	}
}
