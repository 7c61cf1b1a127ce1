package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/sid"
)

// counter reads a counter of TCP in a host's namespace.
func (n *network) counter(host, name string) (value int) {
	n.t.Helper()
	n.at(host).Do(func() {
		text, err := os.ReadFile("/proc/thread-self/net/netstat")
		if err != nil {
			n.t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
			for j := range names {
				if names[0] == "TcpExt:" && names[j] == name {
					value, _ = strconv.Atoi(values[j])
				}
			}
		}
	})
	return value
}

// drops is what the edge of a host counts, for messages.
func (n *network) drops(host string) map[string]uint64 {
	r, err := n.local(host).GetHostStatus(n.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
	if err != nil {
		return nil
	}
	return r.Msg.Counters
}

// switchDrops is what the switches of the lab and their controller count that they lost, of labs with switches.
func (n *network) switchDrops() string {
	var said []string
	for _, node := range n.lab.Plan().Nodes {
		text, err := n.lab.Output(n.t.Context(), node.Name, "ovs-appctl", "coverage/show")
		if err != nil {
			continue // no switch
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if strings.Contains(line, "overflow") || strings.Contains(line, "drop") {
				said = append(said, node.Name+": "+strings.Join(strings.Fields(line), " "))
			}
		}
	}
	client, base, err := api.Dial(n.lab.Controller())
	if err != nil {
		return err.Error()
	}
	defer client.CloseIdleConnections()
	if list, err := apiv1connect.NewSwitchesClient(client, base).ListSwitches(n.t.Context(), connect.NewRequest(&apiv1.ListSwitchesRequest{})); err == nil {
		for _, s := range list.Msg.Switches {
			said = append(said, fmt.Sprintf("%s: the controller took %d packets too few", s.Name, s.Dropped))
		}
	}
	return strings.Join(said, "\n")
}

// lateRefusals is how many of a thousand connects may wait for the kernel's next SYN. It should be none and
// mostly is; on a busy machine about one in thirty thousand does.
const lateRefusals = 2

func TestAThousandRefusalsComeAtOnce(t *testing.T) {
	n := theNetwork(t)
	served, empty := n.create("refusal-served"), n.create("refusal-empty")
	unknown := sid.DefaultSpace().ServiceAddr(sid.ServiceID{SS: 1, Suffix: 0x7fff1234})
	n.serveTCP("s1", port(served, 80))
	n.serving("refusal-served", "tcp", 80, 1)
	for _, c := range []struct {
		what string
		to   netip.AddrPort
		want unix.Errno
	}{
		{"a service that does not exist", netip.AddrPortFrom(unknown, 80), unix.ENETUNREACH},
		{"a service without an instance", netip.AddrPortFrom(empty, 80), unix.EHOSTUNREACH},
		{"a port that nobody serves", netip.AddrPortFrom(served, 81), unix.ECONNREFUSED},
	} {
		t.Run(c.what, func(t *testing.T) {
			n := theNetwork(t)
			before := n.counter("c1", "TCPSynRetrans")
			results := n.connects("c1", c.to, 1000)
			again := n.counter("c1", "TCPSynRetrans") - before
			t.Logf("%d SYNs were sent again by the kernel, after a second", again)
			if err := only(results, c.want); err != nil || again > lateRefusals {
				t.Errorf("%v: %v; SYNs sent again by the kernel: %d, want 0, at most %d\nthe client's edge counts %v\n%s\nlook at: %s", c.to, err, again, lateRefusals, n.drops("c1"), n.switchDrops(), n.look())
			}
		})
	}
}
