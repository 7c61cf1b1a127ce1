package lab_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// bounds is three pairs of agents over one path: one as agents are, one of CUBIC, and one with a limit. o1 and o2 are others.
const bounds = `
name: bounds
nodes:
  ctl: controller
  sw1: {kind: switch, service: true}
  sw2: {kind: switch, service: true}
  c1: host
  c2: host
  c3: host
  o1: host
  x1: agent
  x2: {kind: agent, settings: {control: cubic, connections: 4}}
  x3: {kind: agent, settings: {limit: 5}}
  y1: agent
  y2: {kind: agent, settings: {control: cubic, connections: 4}}
  y3: {kind: agent, settings: {limit: 5}}
  s1: host
  s2: host
  s3: host
  o2: host
links:
  - [c1, sw1]
  - [c2, sw1]
  - [c3, sw1]
  - [o1, sw1]
  - [x1, sw1]
  - [x2, sw1]
  - [x3, sw1]
  - {ends: [sw1, sw2], delay: 20ms, rate: 40Mbit, queue: 200KB, seed: 1}
  - [y1, sw2]
  - [y2, sw2]
  - [y3, sw2]
  - [s1, sw2]
  - [s2, sw2]
  - [s3, sw2]
  - [o2, sw2]
boost:
  sites:
    east1: {hosts: [c1], agents: [x1]}
    west1: {hosts: [s1], agents: [y1]}
    east2: {hosts: [c2], agents: [x2]}
    west2: {hosts: [s2], agents: [y2]}
    east3: {hosts: [c3], agents: [x3]}
    west3: {hosts: [s3], agents: [y3]}
  entries:
    one: {clients: east1, servers: west1}
    two: {clients: east2, servers: west2}
    three: {clients: east3, servers: west3}
`

// A bounded lab is one in which something binds a download.
type bounded struct {
	t    *testing.T
	name string
}

func (b *bounded) must(args ...string) string {
	b.t.Helper()
	return must(b.t, append(strings.Fields("lab exec --lab "+b.name), args...)...)
}

// runs begins a program at a node, which ends with the test.
func (b *bounded) runs(t *testing.T, node string, argv ...string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append(strings.Fields("lab exec --lab "+b.name+" "+node+" --"), argv...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		late := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() }) // one that does not heed it holds up nobody
		cmd.Wait()
		late.Stop()
		if t.Failed() {
			t.Logf("%s: %s", node, said.String())
		}
	})
}

// listens waits until a node's port has a listener.
func (b *bounded) listens(node, port string) {
	b.t.Helper()
	b.must(node, "--", "timeout", "30", "sh", "-c", "until ss -Hltn sport = "+port+" | grep -q .; do sleep 0.05; done")
}

// sysctl changes one of a node until the test is over, and has agents begin anew with it.
func (b *bounded) sysctl(t *testing.T, node, name, value string) {
	t.Helper()
	set := func(value string) {
		b.must(node, "--", "sysctl", "-qw", name+"="+value)
		for _, agent := range []string{"x1/boostd", "y1/boostd"} {
			must(t, "lab", "kill", "--lab", b.name, agent)
			must(t, "lab", "start", "--lab", b.name, agent)
		}
		nstest.Wait(t, "scaffold boost agent ls", func() error { return b.meet("x1", "y1") })
	}
	was := strings.TrimSpace(b.must(node, "--", "sysctl", "-n", name))
	set(value)
	t.Cleanup(func() { set(strings.Join(strings.Fields(was), " ")) })
}

// meet reports whether two agents have connections.
func (b *bounded) meet(agent, other string) error {
	var all struct {
		Agents []struct {
			Name   string
			Trunks []struct {
				Agent string
				Up    bool
			}
		}
	}
	out := must(b.t, "boost", "agent", "ls", "--lab", b.name, "-o", "json")
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return err
	}
	for _, a := range all.Agents {
		for _, t := range a.Trunks {
			if a.Name == agent && t.Agent == other && t.Up {
				return nil
			}
		}
	}
	return fmt.Errorf("%s has no connections to %s: %s", agent, other, out)
}

// polices has a node take no more than a rate of what comes by each TCP connection, and drop the rest, until the test is over.
func (b *bounded) polices(t *testing.T, node, rate string) {
	t.Helper()
	nstest.Program(t, "nft", "nftables")
	b.must(node, "--", "nft", `table inet policer {
		set flows { type inet_service . inet_service; flags dynamic; size 1000; }
		chain in {
			type filter hook input priority 0;
			meta l4proto tcp update @flows { tcp sport . tcp dport limit rate over `+rate+` burst 128 kbytes } drop
		}
	}`)
	t.Cleanup(func() { b.must(node, "--", "nft", "delete table inet policer") })
}

// slow gives an agent's processes three hundredths of a processor until the test is over.
func (b *bounded) slow(t *testing.T, agent string) {
	t.Helper()
	root, quota, value := "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "3000"
	if _, err := os.Stat(filepath.Join(root, quota)); err != nil {
		root, quota, value = "/sys/fs/cgroup", "cpu.max", "3000 100000"
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+cpu"), 0o644); err != nil {
			nstest.Lacks(t, "no cgroup limits processors: neither version 1 at /sys/fs/cgroup/cpu nor version 2 at /sys/fs/cgroup has cpu (%v)", err)
		}
	}
	group, all := filepath.Join(root, b.name), filepath.Join(root, "cgroup.procs")
	pids, err := exec.Command("pgrep", "-f", filepath.Join(b.name, agent, "boostd/boostd.yaml")).Output()
	if err == nil {
		err = os.Mkdir(group, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(group, quota), []byte(value), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	move := func(to string) {
		for _, pid := range strings.Fields(string(pids)) {
			if err := os.WriteFile(to, []byte(pid), 0o644); err != nil {
				t.Error(err)
			}
		}
	}
	move(filepath.Join(group, "cgroup.procs"))
	t.Cleanup(func() {
		move(all)
		if err := os.Remove(group); err != nil {
			t.Error(err)
		}
	})
}

// newBounded brings the lab up, with a server of iperf3 at each host that is one.
func newBounded(t *testing.T) *bounded {
	t.Helper()
	nstest.Root(t)
	nstest.Program(t, "ovs-vswitchd", "openvswitch-switch")
	nstest.Program(t, "iperf3", "iperf3")
	before, name := lab.Machine(t), nstest.LabNamed("bounds")
	path := filepath.Join(t.TempDir(), "bounds.yaml")
	if err := os.WriteFile(path, []byte(bounds), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if after := lab.Machine(t); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	})
	must(t, "lab", "up", "-q", "--name", name, path)
	t.Cleanup(func() { scaffold(t, "lab", "down", name) })
	b := &bounded{t, name}
	for _, s := range []string{"s1", "s2", "s3", "o2"} {
		b.runs(t, s, "iperf3", "-s")
		b.listens(s, "5201")
	}
	return b
}

// download is one of a client, for longer than it takes to explain it.
func (b *bounded) download(client, server string, more ...string) func(*testing.T) {
	return func(t *testing.T) {
		b.runs(t, client, append([]string{"iperf3", "-c", addressOf(t, b.name, server), "-R", "-t", "120"}, more...)...)
	}
}

// loss is that of the path towards the clients from now on.
func (b *bounded) loss(t *testing.T, part string) {
	must(t, "lab", "link", "--lab", b.name, "sw2->sw1", "loss", part)
}

// A binding binds a client's download, and explain says so.
type binding struct {
	what   string
	begin  func(*testing.T)
	client string
	says   string
}

// explains waits until what binds is named, with what to do. What is named before, while windows grow, is not asked.
func (b *bounded) explains(c binding) {
	b.t.Run(c.what, func(t *testing.T) {
		c.begin(t)
		client, last := addressOf(t, b.name, c.client), ""
		for end := time.Now().Add(100 * time.Second); !strings.Contains(last, c.says); {
			if time.Now().After(end) {
				t.Fatalf("explain does not say %q, but\n%s", c.says, last)
			}
			time.Sleep(500 * time.Millisecond) // agents look every 50 ms, and tell twice a second
			last, _, _ = scaffold(t, "boost", "explain", client, "--lab", b.name)
		}
		t.Log(last)
	})
}

func TestExplainNamesAnOperatorsLimit(t *testing.T) {
	b := newBounded(t)
	b.explains(binding{"an operator's limit", b.download("c3", "s3"), "c3", "the limit of agent y3 binds"})
}

// Nine more things that may bind a download, one after the other over the same path.
func TestExplainNamesWhatBinds(t *testing.T) {
	b := newBounded(t)
	for _, c := range []binding{
		{"the server's program", b.download("c1", "s1", "-b", "5M"), "c1", "the server binds"},
		{"the client's program", func(t *testing.T) {
			b.runs(t, "s1", nstest.Program(t, "socat", "socat"), "-u", "OPEN:/dev/zero", "TCP6-LISTEN:5301,reuseaddr")
			b.listens("s1", "5301")
			b.runs(t, "c1", "python3", "-c", "import socket, time\nc = socket.create_connection(('"+addressOf(t, b.name, "s1")+"', 5301))\nwhile c.recv(100000): time.sleep(0.1)")
		}, "c1", "the client binds"},
		{"the link", b.download("c1", "s1"), "c1", "the path is full"},
		{"loss by chance", func(t *testing.T) {
			b.loss(t, "1%")
			t.Cleanup(func() { b.loss(t, "0%") })
			b.download("c2", "s2")(t)
		}, "c2", "loss by chance binds"},
		{"a policer of each connection", func(t *testing.T) {
			b.polices(t, "x1", "300 kbytes/second")
			b.download("c1", "s1")(t)
		}, "c1", "something on the way limits each connection"},
		{"others", func(t *testing.T) {
			b.runs(t, "o1", "iperf3", "-c", addressOf(t, b.name, "o2"), "-R", "-P", "8", "-C", "cubic", "-t", "120")
			b.download("c1", "s1")(t)
		}, "c1", "others' traffic fills the path"},
		{"a small send buffer", func(t *testing.T) {
			b.sysctl(t, "y1", "net.ipv4.tcp_wmem", "4096 16384 16384")
			b.download("c1", "s1")(t)
		}, "c1", "the socket buffers of agent y1 bind"},
		{"a small receive buffer", func(t *testing.T) {
			b.sysctl(t, "x1", "net.ipv4.tcp_rmem", "4096 32768 32768")
			b.download("c1", "s1")(t)
		}, "c1", "the socket buffers of agent x1 bind"},
		{"an agent's processor", func(t *testing.T) {
			b.slow(t, "y1")
			b.download("c1", "s1")(t)
		}, "c1", "the processor of agent y1 binds"},
	} {
		b.explains(c)
	}
}
