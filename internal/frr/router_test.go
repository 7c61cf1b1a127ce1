package frr

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/nstest"
)

func TestADaemonThatDiesIsNamed(t *testing.T) {
	r := chain(t, 1, ospf)
	if err := syscall.Kill(r.routers[0].PID("ospf6d"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := nstest.Receive(t, "Router.mourn", r.died)
	for _, want := range []string{"ospf6d of r0 ended: signal: killed", r.routers[0].file("ospf6d.log")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if r.routers[0].Err() == nil {
		t.Error("the router does not know that it is dead")
	}
}

// spec is of a router without a network.
func spec(t *testing.T, files map[string]string) Spec {
	t.Helper()
	ns := nstest.New(t, "r")
	dir := t.TempDir()
	os.Chmod(filepath.Dir(dir), 0o755)
	return Spec{Name: "r", Netns: fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), Dir: filepath.Join(dir, "frr"), Files: files}
}

// refuse starts a router that must not come up.
func refuse(t *testing.T, s Spec, want ...string) {
	t.Helper()
	r, err := Start(context.Background(), s)
	if err == nil {
		r.Stop()
		t.Fatalf("it started, want %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v, want %q", err, w)
		}
	}
}

func TestAStartThatCannotBeSaysWhy(t *testing.T) {
	nstest.Root(t)
	files := map[string]string{"zebra": ""}
	s := spec(t, map[string]string{"zebra": "", "rip6d": ""})
	refuse(t, s, "FRR of r: there is no daemon rip6d")
	s = spec(t, files)
	s.Dir = "frr"
	refuse(t, s, `directory "frr" is not absolute`)
	s = spec(t, files)
	os.Chmod(filepath.Dir(s.Dir), 0o700)
	refuse(t, s, "may not enter "+filepath.Dir(s.Dir), "chmod o+x")
	s = spec(t, files)
	s.Netns = "/run/netns/scaffold-none"
	refuse(t, s, "network namespace: open /run/netns/scaffold-none")
	s = spec(t, files)
	s.Cgroup = "/proc/self"
	refuse(t, s, "start zebra")
	s = spec(t, map[string]string{"zebra": "hostname r\ninterface e0\n bananas 3\n"})
	s.Check = []string{"zebra"}
	refuse(t, s, "zebra does not take its configuration", "line 3:  bananas 3")
}

func TestADaemonThatEndsAtItsStartIsNamed(t *testing.T) {
	s := spec(t, map[string]string{"zebra": ""})
	if err := os.MkdirAll(filepath.Join(s.Dir, "zebra.pid", "full"), 0o755); err != nil { // where its file is to be
		t.Fatal(err)
	}
	refuse(t, s, "FRR of r: zebra of r ended", "zebra.log")
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
	c := full
	files, err := c.Files()
	if err != nil {
		t.Fatal(err)
	}
	s := spec(t, files)
	for name := range files {
		s.Check = append(s.Check, name)
	}
	r, err := Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	nstest.Wait(t, "the daemons read their files after they opened their sockets", func() error {
		out, err := r.Ask(context.Background(), "show running-config")
		for _, want := range []string{"ipv6 ospf6 cost 7", "ip ospf hello-interval 2", "neighbor e1 interface remote-as external", "bgp timers", "2001:db8::/32"} {
			if err == nil && !strings.Contains(strings.ReplaceAll(out, "timers bgp", "bgp timers"), want) {
				err = fmt.Errorf("no %q in:\n%s", want, out)
			}
		}
		return err
	})
}
