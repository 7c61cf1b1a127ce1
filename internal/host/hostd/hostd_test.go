package hostd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func ready(port uint32, want bool) func(*apiv1.HostReport) bool {
	return func(r *apiv1.HostReport) bool {
		for _, e := range append(r.GetDelta().GetEntries(), r.GetSnapshot().GetEntries()...) {
			if e.Port == port && !e.Gone && e.Ready == want {
				return true
			}
		}
		return false
	}
}

func gone(port uint32) func(*apiv1.HostReport) bool {
	return func(r *apiv1.HostReport) bool {
		for _, e := range r.GetDelta().GetEntries() {
			if e.Port == port && e.Gone {
				return true
			}
		}
		return false
	}
}

func TestJoinRegisterLeave(t *testing.T) {
	l := newLink(t)
	before := l.kernelState(t)
	d := l.start(t, nil)
	j := l.controller.next(t, d).GetJoin()
	if j == nil || j.Name != "h1" || len(j.Key) != 32 || j.Attachment.Router != "r1" || j.Attachment.Port != "down0" ||
		j.Attachment.LinkLocal != l.host.LinkLocal(t, "up0").String() || j.Identity == 0 || j.BootId == "" {
		t.Fatalf("first report: %v", j)
	}
	if s := l.controller.next(t, d).GetSnapshot(); s == nil || len(s.Entries) != 0 {
		t.Fatalf("second report: %v, want an empty snapshot", s)
	}
	p := l.program(t, 80)
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	state := l.kernelState(t)
	for _, want := range []string{"iif up0 lookup 23727", "fwmark 0x5caf lookup 23727", "fd5d:0:1:101::1/128", "fd5c::/32 via", "quickack 1",
		"rto_min", "local fd5c::/32 dev lo table 23727", "fd5d:0:1::/48 via", "ip_nonlocal_bind = 1"} {
		if !strings.Contains(state, want) {
			t.Errorf("no %q in the kernel's state:\n%s", want, state)
		}
	}
	regs, err := l.local(t).ListRegistrations(context.Background(), connect.NewRequest(&apiv1.ListRegistrationsRequest{}))
	if err != nil || len(regs.Msg.Registrations) != 1 || regs.Msg.Registrations[0].Service != "web" || regs.Msg.Registrations[0].Pids[0] != uint32(p.PID()) {
		t.Errorf("registrations: %v %v", regs, err)
	}
	p.Signal(syscall.SIGKILL)
	l.controller.until(t, d, "port 80 gone", gone(80))
	d.Signal(syscall.SIGTERM)
	l.controller.until(t, d, "leave", func(r *apiv1.HostReport) bool { return r.GetLeave() != nil })
	if err := d.Wait(); err != nil {
		t.Errorf("%v\n%s", err, d.Output())
	}
	if after := l.kernelState(t); after != before {
		t.Errorf("left behind:\n%s\nbefore:\n%s", after, before)
	}
	if _, err := os.Stat(l.dir + "/hostd.sock"); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := os.Stat(l.dir + "/run/bpf"); !os.IsNotExist(err) {
		t.Errorf("the BPF file system is still there: %v\n%s", err, d.Output())
	}
	if t.Failed() {
		t.Log(d.Output())
	}
}

func TestKilledDaemonIsAdopted(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	early := l.program(t, 80)
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	running := l.running(t)
	d.Kill()
	if after := l.kernelState(t); after != running {
		t.Errorf("the data path did not outlive the daemon:\n%s", after)
	}
	pins, _ := filepath.Glob(l.dir + "/run/bpf/host-*/*")
	if len(pins) == 0 {
		t.Error("no pins outlived the daemon")
	}
	late := l.program(t, 81) // while nobody looks
	early.Kill()
	d = l.start(t, nil)
	j := l.controller.until(t, d, "join", func(r *apiv1.HostReport) bool { return r.GetJoin() != nil }).GetJoin()
	if j.Locator != "fd5d:0:1:101::/64" {
		t.Errorf("asks for locator %q, had fd5d:0:1:101::/64", j.Locator)
	}
	d.WaitFor(t, "adopted=true")
	if s := l.controller.next(t, d).GetSnapshot(); len(s.GetEntries()) != 1 || s.Entries[0].Port != 81 || !s.Entries[0].Ready {
		t.Errorf("snapshot %v, want port 81, ready: it served before the daemon came", s)
	}
	late.Signal(syscall.SIGKILL)
	l.controller.until(t, d, "port 81 gone", gone(81))
}

func TestForeignFlushIsUndone(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.controller.until(t, d, "snapshot", func(r *apiv1.HostReport) bool { return r.GetSnapshot() != nil })
	whole := l.running(t)
	for _, cmd := range []string{"ip -6 rule del pref 23727", "ip -6 route del fd5c::/32", "ip -6 addr del fd5d:0:1:101::1/128 dev up0", "ip -6 route flush table 23727"} {
		l.host.Run(t, strings.Fields(cmd)...)
		nstest.Wait(t, "internal/host/routing; what the daemon printed", func() error {
			if now := l.kernelState(t); now != whole {
				return fmt.Errorf("after %q:\n%s\nwant:\n%s", cmd, now, whole)
			}
			return nil
		})
	}
	d.WaitFor(t, "put back what somebody removed")
	l.host.Down(t, "up0")
	d.WaitFor(t, "uplink cannot be used")
	l.host.Up(t, "up0")
	nstest.Wait(t, "uplink.go; what the daemon printed", func() error {
		if now := l.kernelState(t); now != whole {
			return fmt.Errorf("after down and up:\n%s\nwant:\n%s", now, whole)
		}
		return nil
	})
}

func TestReadyCheckAndStoppedProgramGateTheTraffic(t *testing.T) {
	l := newLink(t)
	l.controller.mu.Lock()
	l.controller.ready = "http:/health"
	l.controller.mu.Unlock()
	d := l.start(t, nil)
	p := l.program(t, 80)
	l.controller.until(t, d, "port 80 waits for its check", ready(80, false))
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	p.Signal(syscall.SIGSTOP)
	l.controller.until(t, d, "port 80 is stopped", ready(80, false))
	p.Signal(syscall.SIGCONT)
	l.controller.until(t, d, "port 80 ready again", ready(80, true))
}

func TestControllerGoneAndBack(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.program(t, 80)
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	l.controller.mu.Lock()
	l.controller.stop()
	l.controller.mu.Unlock()
	d.WaitFor(t, "controller unreachable")
	l.program(t, 81)
	l.listen(t)
	l.controller.until(t, d, "join", func(r *apiv1.HostReport) bool { return r.GetJoin() != nil })
	s := l.controller.next(t, d).GetSnapshot()
	if len(s.GetEntries()) != 2 {
		t.Errorf("snapshot after the reconnect: %v", s)
	}
}

func TestAdminGoesToTheController(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.controller.until(t, d, "snapshot", func(r *apiv1.HostReport) bool { return r.GetSnapshot() != nil })
	client, base, _ := api.Dial("unix:" + l.dir + "/hostd.sock")
	s, err := apiv1connect.NewAdminClient(client, base).GetService(context.Background(), connect.NewRequest(&apiv1.GetServiceRequest{Name: "web"}))
	if err != nil || s.Msg.Address != webAddr.String() {
		t.Errorf("%v %v", s, err)
	}
	status, err := l.local(t).GetHostStatus(context.Background(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
	if err != nil || status.Msg.State != "joined" || status.Msg.Network != "test" || len(status.Msg.Features) == 0 || status.Msg.Uplinks[0].Router != "r1" {
		t.Errorf("%v %v", status, err)
	}
}

// The interface is removed and another of its name comes: all is set up there.
func TestUplinkReplaced(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.program(t, 80)
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	// The kernel takes an interface's addresses away before the interface: who looks between the two sees only that.
	l.host.Run(t, "ip", "-6", "addr", "flush", "dev", "up0")
	d.WaitFor(t, "it has no link-local address")
	l.host.Run(t, "ip", "link", "del", "up0")
	d.WaitFor(t, "there is no such interface")
	nstest.Veth(t, l.host, "other", l.router, "other") // takes the numbers
	nstest.Veth(t, l.host, "up0", l.router, "down0")
	l.listen(t)
	j := l.controller.until(t, d, "join", func(r *apiv1.HostReport) bool { return r.GetJoin() != nil }).GetJoin()
	if j.Locator != "fd5d:0:1:101::/64" || j.Attachment.LinkLocal != l.host.LinkLocal(t, "up0").String() {
		t.Errorf("join at the new interface: %v", j)
	}
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	state := l.kernelState(t)
	for _, want := range []string{"fd5c::/32 via", "fd5d:0:1:101::1/128", "fd5d:0:1::/48 via"} {
		if !strings.Contains(state, want) {
			t.Errorf("no %q after the uplink was replaced:\n%s", want, state)
		}
	}
}

// Nothing joins, nothing spins: one line says what is waited for.
func TestNoUplinkAndNoRouter(t *testing.T) {
	l := newLink(t)
	d := l.start(t, func(c *Config) { c.Uplinks = []string{"nix0"} })
	d.WaitFor(t, "there is no such interface")
	status, err := l.local(t).GetHostStatus(context.Background(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
	if err != nil || status.Msg.State != "waiting for a router" {
		t.Errorf("%v %v", status, err)
	}
	d.Signal(syscall.SIGTERM)
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
}

// An upgrade: --keep leaves everything to the next daemon, whose own end removes it.
func TestKeepLeavesTheDataPath(t *testing.T) {
	l := newLink(t)
	before := l.kernelState(t)
	d := l.start(t, func(c *Config) { c.Keep = true })
	l.program(t, 80)
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	running := l.running(t)
	d.Signal(syscall.SIGTERM)
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
	if after := l.kernelState(t); after != running {
		t.Errorf("kept:\n%s\nwant:\n%s", after, running)
	}
	d = l.start(t, nil)
	d.WaitFor(t, "adopted=true")
	l.controller.until(t, d, "join", func(r *apiv1.HostReport) bool { return r.GetJoin() != nil })
	l.controller.until(t, d, "snapshot", func(r *apiv1.HostReport) bool { return len(r.GetSnapshot().GetEntries()) == 1 })
	d.Signal(syscall.SIGTERM)
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
	if after := l.kernelState(t); after != before {
		t.Errorf("left behind:\n%s\nbefore:\n%s", after, before)
	}
}

// A daemon that said so answers at the first try.
func TestAHostIsReadyWhenItSaysSo(t *testing.T) {
	next := nstest.Manager(t)
	l := newLink(t)
	l.start(t, nil)
	if got := next(); got != "READY=1" {
		t.Fatalf("the service manager hears %q", got)
	}
	if _, err := l.local(t).GetHostStatus(t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{})); err != nil {
		t.Error(err)
	}
}
