package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/wires"
	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// small is a lab whose daemons tests replace by a stub.
const small = `
name: NAME
services: {web: {}}
nodes:
  ctl: controller
  r1: {kind: router, service: true}
  p: plain
  a-node-with-a-long-name: router
  sw: switch
  c1: host
  s1:
    kind: host
    programs:
      - name: forker
        service: web
        run: sh -c 'sleep 1001 & setsid sleep 1002 & exec sleep 1003'
        files: {conf/a: "I am ${node} in ${dir}, ${addr:web}"}
      - {name: later, run: sleep 1004, start: manual, env: {WHERE: "${dir}"}}
links:
  - [c1, r1]
  - [sw, r1]
  - {ends: [r1, p], rate: 10Mbit}
  - [p, a-node-with-a-long-name]
  - {ends: [s1, a-node-with-a-long-name], delay: 1ms}
timeline:
  - {at: 0s, do: start s1/later}
  - {at: 10ms, do: "exec s1: sh -c 'echo from ${node}'"}
  - {at: 20ms, do: kill s1/forker}
measure:
  - {name: host, node: c1, run: hostname}
  - {name: fails, node: c1, run: "sh -c 'echo bad; exit 3'"}
`

func smallLab(t testing.TB, name string) (*file.File, Options) {
	t.Helper()
	nstest.Root(t)
	f, err := file.Parse("small.yaml", []byte(strings.Replace(small, "NAME", nstest.LabNamed(name), 1)))
	if err != nil {
		t.Fatal(err)
	}
	return f, Options{stub: []string{"sleep", "1000"}, Log: t.Logf}
}

func upLab(t *testing.T, name string) *Lab {
	t.Helper()
	f, opt := smallLab(t, name)
	l, err := Up(t.Context(), f, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Down(context.Background(), f.Name, opt) })
	return l
}

// machine is all that a lab could leave behind.
func machine(t testing.TB) string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"/run/netns/*", "/run/scaffold/*", "/run/scaffold/lab/.*", "/run/scaffold/lab/*", "/sys/class/net/*"} {
		found, _ := filepath.Glob(pattern)
		all = append(all, found...)
	}
	root, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	groups, _ := filepath.Glob(root + "/scaffold-lab-" + nstest.LabNamed("*"))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		ofALab := strings.Contains(line, "/run/netns/scaf-") || strings.Contains(line, "/run/scaffold/lab/")
		switch {
		case ofALab && !strings.Contains(line, nstest.LabNamed("")): // of somebody else's: mounts of the machine are seen here
		case strings.Contains(line, "/run/netns"), strings.Contains(line, "scaffold"):
			all = append(all, line)
		}
	}
	return strings.Join(slices.DeleteFunc(append(all, groups...), func(s string) bool {
		return strings.HasSuffix(s, "/.") || strings.HasSuffix(s, "/..")
	}), "\n")
}

func TestDownLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	nstest.Root(t)
	before := machine(t)
	l := upLab(t, "gone")
	pids := l.procs.Root.PIDs()
	if len(pids) < 6 {
		t.Fatalf("only %d processes run", len(pids))
	}
	if err := Down(t.Context(), l.File.Name, l.opt); err != nil {
		t.Fatal(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	for _, pid := range pids {
		nstest.Wait(t, fmt.Sprintf("ps -fp %d", pid), func() error { return gone(pid) })
	}
	if err := Down(t.Context(), l.File.Name, l.opt); !errors.Is(err, ErrNone) {
		t.Errorf("second down: %v, want %v", err, ErrNone)
	}
}

// gone is an error while the process runs; a zombie has only its parent to wait for.
func gone(pid int) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || strings.Contains(string(text), ") Z ") {
		return nil
	}
	return fmt.Errorf("process %d runs", pid)
}

func TestASecondUpIsRefusedAndHarmless(t *testing.T) {
	l := upLab(t, "twice")
	pids := waitPIDs(t, l.procs.Group("s1", "forker"), 3)
	_, err := Up(t.Context(), l.File, l.opt)
	if !errors.Is(err, ErrUp) || !strings.Contains(err.Error(), "scaffold lab down twice_") {
		t.Errorf("second up: %v", err)
	}
	if now := l.procs.Group("s1", "forker").PIDs(); !slices.Equal(now, pids) {
		t.Errorf("processes before %v, after %v", pids, now)
	}
}

func TestTwoLabsRunSideBySide(t *testing.T) {
	nstest.Root(t)
	errs := make(chan error)
	names := []string{"left", "right"}
	for _, name := range names {
		f, opt := smallLab(t, name)
		go func() {
			_, err := Up(context.Background(), f, opt)
			errs <- err
		}()
		t.Cleanup(func() { Down(context.Background(), f.Name, opt) })
	}
	for range names {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if err := Down(t.Context(), nstest.LabNamed("left"), Options{}); err != nil {
		t.Fatal(err)
	}
	l, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := l.Output(t.Context(), "c1", "hostname"); err != nil || string(out) != "c1\n" {
		t.Errorf("the other lab after one went: %q, %v", out, err)
	}
}

func TestLinksCarryAndLoseAsTold(t *testing.T) {
	l := upLab(t, "links")
	r1, p := l.plan.Node("r1"), l.plan.Node("p")
	ping := func() error {
		return reach(t, l, "r1", netip.AddrPortFrom(p.LinkLocal.WithZone("to-p"), 9))
	}
	// The kernel takes up to a second to believe a carrier that came.
	nstest.Wait(t, "ip -n "+r1.Netns+" addr", ping)
	for _, verb := range []string{"cut r1 p", "unplug p"} {
		act(t, l, verb)
		if ping() == nil {
			t.Errorf("r1 reaches p after %s", verb)
		}
		act(t, l, "heal r1 p")
		act(t, l, "heal p")
		nstest.Wait(t, "ip -n "+p.Netns+" addr, after "+verb+" and heal", ping)
	}
	s, err := l.Status()
	if err != nil || s.Links[2].State != "up" || s.Links[2].Rate != 1e7 {
		t.Errorf("status of r1 - p: %+v, %v", s.Links[2], err)
	}
	routes, _ := l.Output(t.Context(), "p", "ip", "-6", "route")
	if !strings.Contains(string(routes), fmt.Sprintf("fd5c::/32 via %v dev to-r1", r1.LinkLocal)) {
		t.Errorf("routes of p after heal:\n%s", routes)
	}
	rate, _ := l.Output(t.Context(), "p", "tc", "qdisc", "show", "dev", "to-r1")
	if !strings.Contains(string(rate), "rate 10Mbit") {
		t.Errorf("rate of p/to-r1: %s", rate)
	}
}

// reach sends a datagram to a closed port: "connection refused" is the answer of a live neighbour.
func reach(t *testing.T, l *Lab, node string, to netip.AddrPort) (err error) {
	err = wires.In(l.plan.Node(node).Netns, func() error { return ask(to) })
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	return fmt.Errorf("asked %v: %v", to, err)
}

func act(t *testing.T, l *Lab, text string) {
	t.Helper()
	a, err := file.ParseAction(text)
	if err == nil {
		err = l.Do(t.Context(), a)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestKillReachesWhatDaemonized(t *testing.T) {
	l := upLab(t, "kill")
	c := l.procs.Group("s1", "forker")
	pids := waitPIDs(t, c, 3)
	act(t, l, "stop s1/forker")
	nstest.Wait(t, "ps", func() error {
		if s := l.procs.Status("s1", "forker", ""); s.State != "stopped" {
			return fmt.Errorf("state after stop: %+v", s)
		}
		return nil
	})
	act(t, l, "cont s1/forker")
	act(t, l, "kill s1/forker")
	for _, pid := range pids {
		if err := gone(pid); err != nil {
			t.Error(err)
		}
	}
	act(t, l, "start s1/forker")
	waitPIDs(t, c, 3)
	if err := l.Do(t.Context(), file.Action{Verb: "start", Node: "s1", Program: "forker"}); err == nil {
		t.Error("a running program was started again")
	}
	act(t, l, "restart r1")
	if !l.procs.Running("r1", "routerd") {
		t.Error("r1 runs no routerd after restart")
	}
}

func waitPIDs(t *testing.T, c cgroups.Group, want int) (pids []int) {
	t.Helper()
	nstest.Wait(t, "ps", func() error {
		if pids = c.PIDs(); len(pids) != want {
			return fmt.Errorf("processes %v in %s, want %d", pids, c, want)
		}
		return nil
	})
	return pids
}

func TestProgramsSeeTheirNode(t *testing.T) {
	l := upLab(t, "see")
	text, err := os.ReadFile(l.ProgramDir("s1", "forker") + "/conf/a")
	if want := "I am s1 in " + l.ProgramDir("s1", "forker") + ", fd5c::1"; string(text) != want {
		t.Errorf("file of forker: %q, %v; want %q", text, err, want)
	}
	script := "hostname; cat /etc/resolv.conf; echo $SCAFFOLD_API; ls -d /sys/class/net >/dev/null; ip -br link | cut -d' ' -f1"
	out, err := l.Output(t.Context(), "c1", "sh", "-c", script)
	for _, want := range []string{"c1\n", "nameserver ::1\nsearch svc\n", "unix:" + l.Socket("c1") + "\n", "to-r1"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("c1 does not see %q: %s, %v", want, out, err)
		}
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), "/etc/resolv.conf") {
		t.Error("a node's resolv.conf is mounted outside")
	}
}

func TestExitCodesComeThrough(t *testing.T) {
	l := upLab(t, "exits")
	_, err := l.Output(t.Context(), "c1", "sh", "-c", "exit 42")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 42 {
		t.Errorf("got %v, want exit code 42", err)
	}
}

func TestAFailureOnTheWayUpLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	f, opt := smallLab(t, "fails")
	before := machine(t)
	f.Node("s1").Programs[0].Argv = []string{"/no/such/program"}
	_, err := Up(t.Context(), f, opt)
	if err == nil || !strings.Contains(err.Error(), "s1/forker") {
		t.Errorf("up with a missing program: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	opt.Log = func(format string, args ...any) {
		if strings.Contains(fmt.Sprintf(format, args...), "daemons") {
			cancel() // as by Ctrl-C
		}
	}
	f, _ = smallLab(t, "fails")
	if _, err := Up(ctx, f, opt); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted up: %v", err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestRunGoesThroughItsTimeline(t *testing.T) {
	f, opt := smallLab(t, "run")
	before := machine(t)
	r, err := Run(t.Context(), f, opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Steps) != 3 || len(r.Measures) != 2 || !r.Failed() {
		t.Fatalf("result %+v", r)
	}
	for _, s := range r.Steps {
		if s.Error != "" || s.Began < s.At {
			t.Errorf("step %+v", s)
		}
	}
	if m := r.Measures; m[0].Output != "c1\n" || m[0].Exit != 0 || m[1].Output != "bad\n" || m[1].Exit != 3 {
		t.Errorf("measurements %+v", m)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// What a program in the lab says of its end is not why.
func TestUseThatIsInterruptedSaysSo(t *testing.T) {
	f, opt := smallLab(t, "cut")
	ctx, cancel := context.WithCancel(t.Context())
	err := With(ctx, f, opt, func(context.Context, *Lab) error {
		cancel()
		return errors.New("the client: signal: killed")
	})
	if want := "lab " + f.Name + ": interrupted; everything is removed again"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	f, opt := smallLab(t, "stopped")
	before := machine(t)
	f.Timeline = append(f.Timeline, &file.Step{At: time.Hour, Action: file.Action{Verb: "kill", Node: "s1", Signal: syscall.SIGKILL}})
	ctx, cancel := context.WithCancel(t.Context())
	opt.Log = func(format string, args ...any) {
		if strings.Contains(fmt.Sprintf(format, args...), "kill s1/forker") {
			cancel()
		}
	}
	if _, err := Run(ctx, f, opt); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted run: %v", err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
