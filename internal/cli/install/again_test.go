package install

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/operate/setup"
)

// tryInstall installs into an image and returns what was said, and the error.
func tryInstall(image string, args ...string) (string, error) {
	thisProgram = func() (string, error) { return "/usr/bin/scaffold", nil } // as a package has it: nothing is copied
	defer func() { thisProgram = os.Executable }()
	cmd := Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append(args, "--root", image))
	err := cmd.Execute()
	return out.String(), err
}

func controldFile(t *testing.T, image string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(image, setup.Controller.Config()))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInstallAgainNeverOpensANetwork: whatever is typed the second time, a network with keys has keys afterwards.
func TestInstallAgainNeverOpensANetwork(t *testing.T) {
	for _, first := range [][]string{{"--network", "lab", "--trust", "keys"}, {"--network", "lab"}, {"--network", "lab", "--log-level", "warn"}} {
		for _, again := range [][]string{{"--network", "lab", "--log-level", "info"}, {"--log-level", "debug"}, {}, {"--listen", "[::]:23728"}, {"--trust", "open"}, {"--trust", "open", "--network", "lab", "--listen", "192.0.2.1:1"}} {
			image := t.TempDir()
			if out, err := tryInstall(image, append([]string{"controller"}, first...)...); err != nil {
				t.Fatalf("%v: %v\n%s", first, err, out)
			}
			before := controldFile(t, image)
			out, err := tryInstall(image, append([]string{"controller"}, again...)...)
			now := controldFile(t, image)
			if opens := strings.Contains(strings.Join(again, " "), "open"); opens && (err == nil || !strings.Contains(err.Error(), "has keys") || now != before) {
				t.Errorf("%v, then %v: %v; the file was %q and is %q", first, again, err, before, now)
			} else if !opens && err != nil {
				t.Errorf("%v, then %v: %v", first, again, err)
			}
			if !strings.Contains(now, "trust: keys\n") || !strings.Contains(now, "network: lab\n") {
				t.Errorf("%v, then %v: the file is %q\n%s", first, again, now, out)
			}
		}
	}
}

// TestInstallAgainKeepsWhatItIsNotTold also of what somebody has edited, and shows what it changes.
func TestInstallAgainKeepsWhatItIsNotTold(t *testing.T) {
	image := t.TempDir()
	if _, err := tryInstall(image, "host", "--name", "s1", "--uplink", "eth0"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(image, setup.Host.Config())
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, "# by hand\nlog-level: debug\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := tryInstall(image, "host", "--uplink", "eth1", "--dry-run")
	if want := setup.Host.Config() + ": uplink: [eth1] (was [eth0])"; err != nil || !strings.Contains(out, want) {
		t.Errorf("a dry run: %v, want %s:\n%s", err, want, out)
	}
	if out, err = tryInstall(image, "host", "--uplink", "eth1"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := strings.Replace(string(text), "uplink: [eth0]", "uplink: [eth1]", 1) + "# by hand\nlog-level: debug\n"
	if now, _ := os.ReadFile(file); string(now) != want {
		t.Errorf("the file is\n%s\nwant\n%s", now, want)
	}
	m, err := setup.Image(image)
	if err != nil {
		t.Fatal(err)
	}
	rm, err := m.Removal(nil, false, false)
	if err != nil || len(rm.Keep) != 1 || !strings.Contains(rm.Keep[0], "was edited") {
		t.Errorf("an uninstallation keeps %q, %v; want the file that was edited", rm.Keep, err)
	}
}

// TestAnOpenNetworkIsSaid: --trust open has to be typed, and stays.
func TestAnOpenNetworkIsSaid(t *testing.T) {
	image := t.TempDir()
	if out, err := tryInstall(image, "controller", "--network", "trial", "--trust", "open"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := tryInstall(image, "controller", "--log-level", "debug"); err != nil || !strings.Contains(controldFile(t, image), "trust: open\n") {
		t.Errorf("%v: %s", err, controldFile(t, image))
	}
	if _, err := tryInstall(image, "controller", "--trust", "keys"); err != nil || !strings.Contains(controldFile(t, image), "trust: keys\n") {
		t.Errorf("%v: %s", err, controldFile(t, image))
	}
	if os.MkdirAll(filepath.Join(image, "/var/lib/scaffold/controld/etcd"), 0o700) != nil {
		t.Fatal("no store")
	}
	os.Remove(filepath.Join(image, setup.Controller.Config()))
	if _, err := tryInstall(image, "controller", "--network", "trial"); err != nil || strings.Contains(controldFile(t, image), "trust:") {
		t.Errorf("beside a store that is there: %v: %s; want nothing about trust, the store says it", err, controldFile(t, image))
	}
}
