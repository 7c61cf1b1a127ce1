package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// allow says who may connect to a service, and waits until host lets it be so.
func (n *network) allow(service string, who ...string) {
	n.t.Helper()
	spec := &apiv1.ServiceSpec{Name: service, Allow: &apiv1.StringList{Items: who}}
	r, err := n.admin.Apply(n.t.Context(), connect.NewRequest(&apiv1.ApplyRequest{Services: []*apiv1.ServiceSpec{spec}}))
	if err != nil || len(r.Msg.Problems) > 0 {
		n.t.Fatalf("apply: %v, %v", err, r)
	}
}

// gets waits until connects from the host end so.
func (n *network) gets(host string, to netip.AddrPort, want unix.Errno) {
	n.t.Helper()
	nstest.Wait(n.t, n.look(), func() error { return only(n.connects(host, to, 1), want) })
}

func TestWhoMayNotConnectIsRefusedAndLosesWhatItHas(t *testing.T) {
	safety.Test(t, safety.Door)
	n := theNetwork(t)
	to := netip.AddrPortFrom(n.create("restricted"), 80)
	n.serveTCP("s1", to.String())
	n.serveUDP("s1", to.String())
	n.serving("restricted", "tcp", 80, 1)
	n.serving("restricted", "udp", 80, 1)
	n.allow("restricted", "c1", "far")
	n.gets("thief", to, unix.EACCES)
	if err := only(n.connects("thief", to, 50), unix.EACCES); err != nil {
		t.Error(err)
	}
	c, u, other := n.dial("c1", "tcp6", to.String()), n.dial("c1", "udp6", to.String()), n.dial("far", "tcp6", to.String())
	for _, c := range []interface {
		Read([]byte) (int, error)
		Write([]byte) (int, error)
	}{c, u, other} {
		if _, err := c.Write([]byte("hello\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
	}
	n.allow("restricted", "far")
	if _, err := c.Read(make([]byte, 64)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the connection of a client that lost its right ends with %v, want connection reset by peer", err)
	}
	nstest.Wait(t, n.look(), func() error {
		_, werr := u.Write([]byte("hello\n"))
		if !errors.Is(werr, unix.EACCES) {
			return fmt.Errorf("its datagrams: %v, want permission denied", werr)
		}
		return nil
	})
	n.gets("c1", to, unix.EACCES)
	n.gets("far", to, 0)
	if host, err := ask(other, "still there"); err != nil || host != "s1" {
		t.Errorf("the connection of a client that kept its right: %q, %v", host, err)
	}
	n.allow("restricted", "service:echo")
	n.gets("far", to, unix.EACCES)
	n.allow("restricted", "::/0")
	n.gets("c1", to, 0)
}

const bankTeller = `
import socket
l = socket.create_server(("::", 80), family=socket.AF_INET6)
while True:
    c, _ = l.accept()
    c.close()
`

func TestAPermitLetsOneHostServe(t *testing.T) {
	safety.Test(t, safety.Door)
	n := theNetwork(t)
	dir := t.TempDir()
	key, file := filepath.Join(dir, "bank.key"), filepath.Join(dir, "s1.permit")
	must := func(host string, argv ...string) string {
		t.Helper()
		out, err := n.run(host, append([]string{self}, argv...)...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
		return out
	}
	must("s1", "service", "keygen", key)
	must("s1", "service", "create", "bank", "--key", key+".pub")
	p := n.start("s1", self, "run", "--service", "bank", "--", "python3", "-c", bankTeller)
	nstest.Wait(t, n.look(), func() error {
		s, err := n.local("s1").GetHostStatus(t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil || !slices.ContainsFunc(s.Msg.Refused, func(g *apiv1.LocalRegistration) bool { return strings.Contains(g.Reason, "shows no permit") }) {
			return fmt.Errorf("the host is not told that it may not serve: %v, %v", s, err)
		}
		return nil
	})
	if err := os.WriteFile(file, []byte(must("s1", "service", "delegate", "bank", "--key", key, "--host", "s1", "--for", "1h")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := n.run("s2", self, "run", "--service", "bank", "--permit", file, "--", "true")
	if exitCode(err) != 4 || !strings.Contains(out, "for another host") {
		t.Errorf("another host with the permit: exit code %d, %s", exitCode(err), out)
	}
	n.serving("bank", "tcp", 80, 0)
	out, err = n.run("s1", self, "run", "--service", "bank", "--permit", file, "--", "true") // presents it; the server is there already
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n.serving("bank", "tcp", 80, 1)
	if out := must("s1", "host", "status"); !strings.Contains(out, "bank") {
		t.Errorf("host status says nothing of the permit:\n%s", out)
	}
	p.Signal(unix.SIGTERM)
	n.serving("bank", "tcp", 80, 0)
}
