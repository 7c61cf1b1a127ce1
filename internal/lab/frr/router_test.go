package frr

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// refuse prepares a router that cannot be.
func refuse(t *testing.T, s Spec, want ...string) {
	t.Helper()
	_, err := Prepare(s)
	if err == nil {
		t.Fatalf("it was prepared, want %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v, want %q", err, w)
		}
	}
}

func TestARouterThatCannotBeSaysWhy(t *testing.T) {
	needFRR(t)
	dir := t.TempDir()
	os.Chmod(filepath.Dir(dir), 0o755)
	s := Spec{Name: "r", Dir: filepath.Join(dir, "frr"), Files: map[string]string{"zebra": "", "rip6d": ""}}
	refuse(t, s, "FRR of r: there is no daemon rip6d")
	s.Files = map[string]string{"zebra": "", "../zebra": ""}
	refuse(t, s, `"../zebra" is no name of a daemon`)
	s.Files = map[string]string{"zebra": ""}
	s.Dir = "frr"
	refuse(t, s, `directory "frr" is not absolute`)
	s.Dir = filepath.Join(dir, "frr")
	os.Chmod(dir, 0o700)
	refuse(t, s, "may not enter "+dir, "chmod o+x")
}

func TestWithoutFRRTheErrorNamesTheCure(t *testing.T) {
	before := places
	defer func() { places = before }()
	places = []string{t.TempDir()}
	if _, err := Find(); err == nil || !strings.Contains(err.Error(), "apt-get install --no-install-recommends frr") {
		t.Error(err)
	}
}

func TestEveryConfigurationIsTakenByItsDaemon(t *testing.T) {
	needFRR(t)
	files, err := full.Files()
	if err != nil {
		t.Fatal(err)
	}
	ns := nstest.New(t, "r")
	dir := run(t, ns, files)
	nstest.Wait(t, "the daemons read their files after they opened their sockets", func() error {
		out, err := vtysh(ns, dir, "show running-config")
		for _, want := range []string{"ipv6 ospf6 cost 7", "ip ospf hello-interval 2", "neighbor e1 interface remote-as external", "bgp timers", "2001:db8::/32"} {
			if err == nil && !strings.Contains(strings.ReplaceAll(out, "timers bgp", "bgp timers"), want) {
				err = fmt.Errorf("no %q in:\n%s", want, out)
			}
		}
		return err
	})
}

// FRR keeps a directory and a file for each daemon below /var/tmp, and one that is killed does not remove them.
func TestAKilledDaemonLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	needFRR(t)
	ns := nstest.New(t, "r")
	processes, err := Prepare(Spec{Name: ns.Name, Dir: filepath.Join(reachable(t), "frr"), Files: map[string]string{"zebra": ""}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		daemon := ns.StartUntil(t, p.Ready, append(p.Argv, "--log", "stdout")...)
		pid := daemon.PID()
		daemon.Kill()
		left, err := filepath.Glob(fmt.Sprintf("/var/tmp/frr/*.%d", pid))
		if err != nil || len(left) > 0 {
			t.Errorf("%s has left %v (%v)", p.Name, left, err)
		}
	}
}
