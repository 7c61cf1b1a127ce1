package e2e

import (
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestASecondHostOfANameIsRefused(t *testing.T) {
	safety.Test(t, safety.Door)
	n := theNetwork(t)
	addr := n.create("twice")
	n.loadServers("s1", addr)
	n.serving("twice", "tcp", echoPort, 1)
	n.serving("twice", "tcp", askPort, 1)
	n.serving("twice", "udp", askPort, 1)
	at := n.locator("s1")
	l := n.startLoad(addr)
	n.kill("thief/hostd")
	uplink, dir := n.lab.Plan().Node("thief").Ports[0].Dev, t.TempDir()
	thief := n.start("thief", self, "hostd", "--name", "s1", "--uplink", uplink, "--socket", dir+"/hostd.sock",
		"--state", dir, "--bpffs", n.lab.Dir()+"/second-bpf")
	thief.WaitFor(t, "is alive already")
	l.progress("while another host wants to be s1")
	if now := n.locator("s1"); now != at {
		t.Errorf("s1 had the locator %v, has %v", at, now)
	}
	if host := n.who("tcp6", port(addr, askPort)); host != "s1" {
		t.Errorf("a new flow meets %q, want s1", host)
	}
	n.thiefIsOutside(thief, dir)
	l.finish()
	thief.Kill()
	n.do("start thief/hostd")
	n.settled()
}

// thiefIsOutside checks that the refused daemon says so itself and has given the host nothing.
func (n *network) thiefIsOutside(thief *nstest.Proc, dir string) {
	n.t.Helper()
	r, err := n.localAt("unix:"+dir+"/hostd.sock").GetHostStatus(n.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
	if err != nil {
		n.t.Fatalf("the refused daemon does not answer: %v\nit printed:\n%s", err, thief.Output())
	}
	if r.Msg.State == "joined" || !strings.Contains(r.Msg.Reason, "alive already") {
		n.t.Errorf("the refused daemon says %q, %q; want that it is not joined, and why", r.Msg.State, r.Msg.Reason)
	}
}
