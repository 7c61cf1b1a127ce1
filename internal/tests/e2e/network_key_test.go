package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/trust"
)

// hurried is this binary, whose controllers wait a second where others wait a minute until the network's next key
// certifies.
func hurried(t *testing.T) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = controld ]; then set -- \"$@\" --announce 1s; fi\nexec %s \"$@\"\n", own)
	file := filepath.Join(t.TempDir(), "scaffold")
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// A sleeper is a host that has a flow, and is away while the network's key is replaced.
type sleeper struct {
	n    *network
	host string
	flow net.Conn
}

// sleeps cuts a host off that has opened a flow, and waits until the network has noticed.
func (n *network) sleeps(host, to string) *sleeper {
	n.t.Helper()
	s := &sleeper{n, host, n.dial(host, "tcp6", to)}
	if _, err := ask(s.flow, "before"); err != nil {
		n.t.Fatal(err)
	}
	n.do("unplug " + host)
	nstest.Wait(n.t, n.look(), func() error { return n.hostIs(host, "gone") })
	return s
}

// wakes plugs the host in again, and has an operator do what it says is to be done.
func (s *sleeper) wakes(leader string) {
	n := s.n
	n.t.Helper()
	at := n.locator(s.host)
	n.do("heal " + s.host)
	nstest.Wait(n.t, n.look(), func() error {
		status, err := n.local(s.host).GetHostStatus(n.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil {
			return err
		}
		if r := status.Msg.Reason; status.Msg.State == "joined" || !strings.Contains(r, "another network") || !strings.Contains(r, "`scaffold join --token T` on this machine makes it a member again") {
			return fmt.Errorf("%s is %s, and says %q", s.host, status.Msg.State, r)
		}
		return nil
	})
	text, err := os.ReadFile(n.lab.LogPath(s.host, "hostd"))
	if said := strings.Count(string(text), "makes it a member again"); err != nil || said != 1 {
		n.t.Errorf("the log of %s says %d times how it comes back, want once (%v)", s.host, said, err)
	}
	// The first line is the token; what to do with it follows.
	token, _, _ := strings.Cut(strings.TrimSpace(n.must(leader, "token", "create", "--role", "host", "--name", s.host, "--lab", n.lab.File.Name)), "\n")
	dir := n.t.TempDir()
	n.must("k1", "join", "--token", token, "--name", s.host, "--uplink", "lo", "--state", n.lab.ProgramDir(s.host, "state"), "--config", filepath.Join(dir, "hostd.yaml"),
		netip.AddrPortFrom(n.lab.Plan().Node(leader).Management, plan.ControllerPort).String())
	nstest.Wait(n.t, n.look(), func() error { return n.hostIs(s.host, "up") })
	if now := n.locator(s.host); now != at {
		n.t.Errorf("%s was at %v and came back at %v", s.host, at, now)
	}
	if host, err := ask(s.flow, "after"); err != nil {
		n.t.Errorf("the flow of a host that slept, to %s: %v", host, err)
	}
}

// must runs a command of the product at a node, and gives what it printed.
func (n *network) must(node string, argv ...string) string {
	n.t.Helper()
	out, err := n.run(node, append([]string{self}, argv...)...)
	if err != nil {
		n.t.Fatalf("scaffold %s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return out
}

// netKey runs one of the commands of the network's key.
func (n *network) netKey(argv ...string) (string, error) {
	n.t.Helper()
	return n.run("k1", append(append([]string{self, "net", "key"}, argv...), "--lab", n.lab.File.Name)...)
}

// A rekeying replaces the network's key while one host sleeps.
type rekeying struct {
	*network
	asleep *sleeper
	before trust.Directory // a copy of what the sleeper has of before
}

// rekeys makes the network's next key.
func (n *network) rekeys(to string) *rekeying {
	n.t.Helper()
	r := &rekeying{n, n.sleeps("z1", to), trust.Directory(n.t.TempDir())}
	if err := os.CopyFS(string(r.before), os.DirFS(n.lab.ProgramDir("z1", "state"))); err != nil {
		n.t.Fatal(err)
	}
	if out, err := n.netKey("rotate"); err != nil || !strings.Contains(out, " next ") {
		n.t.Fatalf("rotate: %v\n%s", err, out)
	}
	return r
}

// certifies waits until the next key certifies for all but the sleeper, and gives the former one.
func (r *rekeying) certifies() (former string) {
	r.t.Helper()
	nstest.Wait(r.t, r.look(), func() error {
		out, err := r.netKey("ls")
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 1 && f[1] == "former" {
				former = f[0]
			}
		}
		if err != nil || former == "" || !strings.Contains(out, "certifies: host z1\n") {
			return fmt.Errorf("the next key does not certify for all but z1: %v\n%s", err, out)
		}
		return nil
	})
	return former
}

// ends retires the former key under load. Flows go on and move by the new key; the former one counts nowhere; who slept
// comes back with a token.
func (r *rekeying) ends(l *load) {
	t := r.t
	t.Helper()
	former := r.certifies()
	l.progress("after the network's next key certifies")
	if out, err := r.netKey("retire", former); exitCode(err) != 4 || !strings.Contains(out, "host z1 has not been here") {
		t.Errorf("retire while a host sleeps: %v\n%s", err, out)
	}
	if out, err := r.netKey("retire", former, "--force"); err != nil || strings.Contains(out, former) {
		t.Errorf("retire --force: %v\n%s", err, out)
	}
	for _, host := range []string{"c1", "s1", "s2"} { // by the connections of before
		r.must(host, "service", "show", "daemons", "--api", "unix:"+r.lab.Socket(host))
	}
	r.do("heal c1 r2")
	l.goesBy("c1", 0, 1)
	l.progress("after a move by the new key")
	leader, _ := r.allRun("")
	r.formerIsRefused(leader, r.before)
	r.asleep.wakes(leader)
}

// formerIsRefused calls a controller with a credential by the key that was retired, as one does who takes any controller.
func (n *network) formerIsRefused(controller string, old trust.Directory) {
	n.t.Helper()
	m, err := old.Load()
	if err != nil {
		n.t.Fatal(err)
	}
	who := m.Config()
	who.VerifyConnection = nil
	e, err := api.ParseEndpoint("https://" + netip.AddrPortFrom(n.lab.Plan().Node(controller).Management, plan.ControllerPort).String())
	if err != nil {
		n.t.Fatal(err)
	}
	client := api.DialWith(e.As(who), func(_ context.Context, network, address string) (net.Conn, error) {
		return n.at("k1").Dial(network, address)
	})
	defer client.CloseIdleConnections()
	_, err = apiv1connect.NewAdminClient(client, api.BaseURL()).GetStatus(n.t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	if connect.CodeOf(err) != connect.CodeUnauthenticated || !strings.Contains(err.Error(), "by which it was certified, was retired") {
		n.t.Errorf("a certificate by the key that was retired: %v", err)
	}
}
