package badinput

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/features"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

func TestAKernelWithoutWhatIsNeededIsRefusedByName(t *testing.T) {
	before := snap(t)
	dir := t.TempDir()
	for _, c := range []struct {
		without string
		args    []string
		says    string
	}{
		{"ring buffers in", []string{"hostd", "--name", "x", "--uplink", "lo", "--socket", dir + "/h", "--state", dir},
			"what a host needs: ring buffers in a map of maps (Linux 5.8; without it: hosts in namespaces cannot share"},
		{"(tc)", []string{"routerd", "--name", "x", "--service", "--controller", controller, "--socket", dir + "/r"},
			"needs: programs at interfaces (tc) (Linux 4.1; without it: "},
		{"kernel types", []string{"doctor"}, "Scaffold cannot run here"},
	} {
		t.Setenv(features.Pretend, c.without)
		_, said, code := inNamespace(t, c.args...)
		if code != 6 || !strings.Contains(said, c.says) {
			t.Errorf("%v without %q: exit code %d: %s", c.args, c.without, code, said)
		}
	}
	before.same(t, "daemons that refused to start")
}

// inNamespace runs a command of the product in a fresh network namespace.
func inNamespace(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return ends(t, exec.Command("unshare", append([]string{"-n", path(t)}, args...)...))
}

func TestAKernelWithoutWhatIsOptionalCostsOnlyThat(t *testing.T) {
	s := newSite(t, "h1")
	s.controld()
	s.routerd()
	t.Setenv(features.Pretend, "bpf_sk_assign_tcp_reqsk")
	h := s.hostd("h1")
	h.WaitFor(t, joined)
	const cost = "a TCP connection whose host is gone is reset"
	if lines(h, cost) != 1 {
		t.Errorf("what the missing feature costs is not said:\n%s", h.Output())
	}
}

func TestWithAFullDiskTheControllerGoesOnAndLosesNothing(t *testing.T) {
	safety.Test(t, safety.Record)
	s := newSite(t, "h1")
	s.routerd()
	script := fmt.Sprintf("mkdir -p %[1]s && mount -t tmpfs -o size=64m scaffold %[1]s && exec %s controld --trust open --listen %s --socket %s --data %[1]s --service web",
		s.path("data"), path(t), strings.TrimPrefix(controller, "http://"), s.path("c.sock"))
	c := s.start(s.ctl, []string{"unshare", "-m", "sh", "-c", script})
	s.until("up", "router", "ls")
	ballast := fmt.Sprintf("/proc/%d/root%s/ballast", c.PID(), s.path("data"))
	if err := os.WriteFile(ballast, make([]byte, 64<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	h, room := s.hostdOnASmallDisk("h1")
	h.WaitFor(t, joined) // works, and cannot be saved, here or there
	_, said, code := s.ask("service", "create", "more")
	if code != 4 || !strings.Contains(said, "disk full") || !strings.Contains(said, "make room") {
		t.Errorf("service create on a full disk: exit code %d: %s", code, said)
	}
	s.until("store.failing", "events", "-n", "99")
	if n := lines(c, "store"); n > 20 {
		t.Errorf("%d lines about it:\n%s", n, c.Output())
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.until("store.back", "events", "-n", "99")
	if out, errs, code := s.ask("service", "create", "more"); code != 0 {
		t.Errorf("with room again: exit code %d: %s%s", code, out, errs)
	}
	s.until("web", "service", "ls")
	const unsaved = "a restart will not know what changed since"
	if n := lines(h, unsaved); n != 1 {
		t.Errorf("the host says %d times that it cannot save:\n%s", n, h.Output())
	}
	if err := os.Remove(room); err != nil {
		t.Fatal(err)
	}
	h.WaitFor(t, "saved again")
}

// hostdOnASmallDisk starts a host's daemon that has a key and no room for more, and returns what takes the room.
func (s *site) hostdOnASmallDisk(host string) (p *nstest.Proc, ballast string) {
	s.t.Helper()
	dir := s.path(host)
	script := fmt.Sprintf("mkdir -p %[1]s && mount -t tmpfs -o size=64k,mode=700 scaffold %[1]s && echo %064[2]d >%[1]s/key && dd if=/dev/zero of=%[1]s/ballast bs=4k 2>/dev/null; exec %[3]s hostd --name %[4]s --uplink eth0 --socket %[1]s.sock --state %[1]s",
		dir, 7, path(s.t), host)
	p = s.start(s.hosts[host], []string{"unshare", "-m", "sh", "-c", script})
	return p, fmt.Sprintf("/proc/%d/root%s/ballast", p.PID(), dir)
}

func TestWhatClientsGetOfNamesThatNobodyServes(t *testing.T) {
	before := snap(t)
	name := nstest.LabName()
	if _, errs, code := scaffold(t, "lab", "up", "-q", "--name", name, "../../../examples/two.yaml"); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	t.Cleanup(func() { scaffold(t, "lab", "down", name) })
	out, errs, code := scaffold(t, "service", "create", "empty", "--lab", name)
	if code != 0 {
		t.Fatalf("service create: exit code %d: %s%s", code, out, errs)
	}
	collisions(t, name)
	nstest.Wait(t, "scaffold lab exec c1 -- curl http://hello.svc/", func() error {
		_, errs, code := scaffold(t, "lab", "exec", "--lab", name, "c1", "--", "curl", "-sS", "-m", "8", "http://hello.svc/")
		if code != 0 {
			return fmt.Errorf("%s", errs)
		}
		return nil
	})
	const dial = "import socket,sys\ntry: socket.create_connection((sys.argv[1], int(sys.argv[2])), 8)\nexcept OSError as e: print(e)"
	for _, c := range [][3]string{
		{"nobody.svc", "80", "Name or service not known"},
		{"hello.svc", "81", "[Errno 111]"},
		{"empty.svc", "80", "[Errno 113]"},
		{"fd5c::77:1234:1234:1234", "80", "[Errno 101]"},
	} {
		out, errs, _ := scaffold(t, "lab", "exec", "--lab", name, "c1", "--", "python3", "-c", dial, c[0], c[1])
		if !strings.Contains(out, c[2]) {
			t.Errorf("connect to %s port %s: %s%s, want %s", c[0], c[1], out, errs, c[2])
		}
	}
	if _, errs, code := scaffold(t, "lab", "up", "--name", name, "../../../examples/two.yaml"); code != 4 || !strings.Contains(errs, "already up") {
		t.Errorf("a second lab up: exit code %d: %s", code, errs)
	}
	if _, errs, code := scaffold(t, "lab", "down", name); code != 0 {
		t.Errorf("lab down: exit code %d: %s", code, errs)
	}
	before.same(t, "lab down")
}

// collisions asks for a service whose suffix another one has.
func collisions(t *testing.T, name string) {
	t.Helper()
	out, _, _ := scaffold(t, "service", "show", "hello", "--lab", name, "-o", "json")
	_, rest, _ := strings.Cut(out, `"sid": "`)
	sid, _, _ := strings.Cut(rest, `"`)
	_, suffix, _ := strings.Cut(sid, "-")
	_, errs, code := scaffold(t, "service", "create", "twin", "--sid", "00000002-"+suffix, "--lab", name)
	if code != 4 || !strings.Contains(errs, "suffix collision: "+suffix+" exists already in service hello") {
		t.Errorf("a second service of suffix %s: exit code %d: %s", suffix, code, errs)
	}
}
