package boostd

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// agentEnv makes this binary an agent, by the file that it names.
const agentEnv = "SCAFFOLD_TEST_BOOSTD"

func TestMain(m *testing.M) {
	path := os.Getenv(agentEnv)
	if path == "" {
		nstest.Main(m)
		return
	}
	patience = 4 * time.Second // longer than another agent's silence, by which it is found to be gone
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if IsWorker() {
		if err := Work(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
			fmt.Println("worker:", err)
		}
		return
	}
	s, err := Read(path)
	if err == nil {
		replace, came := make(chan struct{}), make(chan os.Signal, 1)
		signal.Notify(came, syscall.SIGUSR2)
		go func() { // ends with this process
			for range came {
				replace <- struct{}{}
			}
		}()
		err = Run(ctx, s, slog.New(slog.NewTextHandler(os.Stderr, nil)), Manager{Ready: func() { fmt.Println("ready") }, Replace: replace})
	}
	fmt.Println("ended:", err)
}

// A family is what its addresses are in the tests' network: the client's at x, the server's at y, and those of x and y on
// the link between them.
type family struct{ name, client, atX, x, y, atY, server, clients, servers, all string }

var families = []family{
	{"IPv4", "10.1.0.2/24", "10.1.0.1/24", "10.9.0.1/24", "10.9.0.2/24", "10.2.0.1/24", "10.2.0.2/24", "10.1.0.0/24", "10.2.0.0/24", "0.0.0.0/0"},
	{"IPv6", "fd01::2/64", "fd01::1/64", "fd09::1/64", "fd09::2/64", "fd02::1/64", "fd02::2/64", "fd01::/64", "fd02::/64", "::/0"},
}

func plain(address string) string { a, _, _ := strings.Cut(address, "/"); return a }

// A network is a client, two routers with agents, and a server, in a row.
type network struct {
	t                    *testing.T
	client, x, y, server *nstest.NS
	dir                  string
	paths                map[string]string // further address of each agent; none: one path
	agents               map[string]*nstest.Proc
	accept               string // more of each lane
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := bare(t)
	nstest.Veth(t, n.y, "p0", n.server, "eth0")
	for _, f := range families {
		n.y.Addr(t, "p0", f.atY)
		n.atServer(f)
	}
	return n
}

// narrowed is a network with one router more, between the far agent and the server, and a link behind that which takes no
// more than so many bytes; the server does not know.
func narrowed(t *testing.T, mtu string) *network {
	t.Helper()
	n, narrow := bare(t), nstest.New(t, "narrow")
	nstest.Veth(t, n.y, "p0", narrow, "a")
	nstest.Veth(t, narrow, "b", n.server, "eth0")
	narrow.Forward(t)
	narrow.Sysctl(t, "net/ipv4/ip_forward", "1")
	narrow.Run(t, "ip", "link", "set", "dev", "b", "mtu", mtu)
	for i, f := range families {
		between := [][2]string{{"10.4.0.1/24", "10.4.0.2/24"}, {"fd04::1/64", "fd04::2/64"}}[i]
		n.y.Addr(t, "p0", between[0])
		narrow.Addr(t, "a", between[1])
		narrow.Addr(t, "b", f.atY)
		n.y.Route(t, f.servers, plain(between[1]), "p0")
		narrow.Route(t, f.all, plain(between[0]), "a")
		n.atServer(f)
	}
	return n
}

func (n *network) atServer(f family) {
	n.t.Helper()
	n.server.Addr(n.t, "eth0", f.server)
	n.server.Route(n.t, f.all, plain(f.atY), "eth0")
}

// bare is a network without what is between the far agent and the server.
func bare(t *testing.T) *network {
	t.Helper()
	nstest.Root(t)
	n := &network{t: t, client: nstest.New(t, "client"), x: nstest.New(t, "x"), y: nstest.New(t, "y"), server: nstest.New(t, "server"), dir: t.TempDir(), agents: map[string]*nstest.Proc{}}
	nstest.Veth(t, n.client, "eth0", n.x, "p0")
	nstest.Veth(t, n.x, "p1", n.y, "p1")
	for _, r := range []*nstest.NS{n.x, n.y} {
		r.Forward(t)
		r.Sysctl(t, "net/ipv4/ip_forward", "1")
	}
	for _, f := range families {
		n.client.Addr(t, "eth0", f.client)
		n.x.Addr(t, "p0", f.atX)
		n.x.Addr(t, "p1", f.x)
		n.y.Addr(t, "p1", f.y)
		n.client.Route(t, f.all, plain(f.atX), "eth0")
		n.x.Route(t, f.servers, plain(f.y), "p1")
		n.y.Route(t, f.clients, plain(f.x), "p1")
	}
	return n
}

// file writes what an agent is to do. Both agents carry what the client asks of the server, over the address family of
// their doors alone.
func (n *network) file(name, other string, own, theirs string) string {
	n.t.Helper()
	key, _, err := Key(filepath.Join(n.dir, other+".key"))
	if err != nil {
		n.t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ndoor: %q\nports: [p0, p1]\nkey: %s\nmemory: 8\nagents:\n  %s: {door: %q, key: %s}\nlanes:\n",
		name, plain(own), filepath.Join(n.dir, name+".key"), other, plain(theirs), Public(key))
	if n.paths != nil {
		text := strings.Replace(b.String(), "ports:", fmt.Sprintf("paths: [%q]\nports:", n.paths[name]), 1)
		b.Reset()
		b.WriteString(strings.Replace(text, ": {door:", fmt.Sprintf(": {paths: [%q], door:", n.paths[other]), 1))
	}
	for _, f := range families {
		fmt.Fprintf(&b, "- {client: %s, server: %s, near: [x], far: [y]%s}\n", f.clients, f.servers, n.accept)
	}
	path := filepath.Join(n.dir, name+".yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// start starts an agent.
func (n *network) start(name string) {
	n.t.Helper()
	ns, other, own, theirs := n.x, "y", families[1].x, families[1].y
	if name == "y" {
		ns, other, own, theirs = n.y, "x", families[1].y, families[1].x
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), agentEnv+"="+n.file(name, other, own, theirs))
	n.agents[name] = ns.StartCmd(n.t, cmd)
	n.agents[name].WaitFor(n.t, "ready")
}

// both starts both agents, and waits until connections are carried.
func (n *network) both() {
	n.t.Helper()
	n.start("x")
	n.start("y")
	n.carried()
}

// carried waits until a connection of the client is carried: the agent at the server has a socket in the client's name.
func (n *network) carried() {
	n.t.Helper()
	f := families[0]
	l := n.server.Listen(n.t, "tcp", plain(f.server)+":9")
	defer l.Close()
	end := time.Now().Add(nstest.Deadline)
	for {
		c, err := n.client.Dial("tcp", plain(f.server)+":9")
		if err != nil {
			n.t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			n.t.Fatal(err)
		}
		boosted := strings.Contains(n.y.Run(n.t, "ss", "-Htn", "dport", "=", "9"), plain(f.client))
		c.Close()
		s.Close()
		if boosted {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("no connection is carried\nx: %s\ny: %s", n.agents["x"].Output(), n.agents["y"].Output())
		}
	}
}

// serve has nginx offer a file of so many bytes, in which no two parts are alike. It takes requests in the SYN where its
// kernel does.
func (n *network) serve(f family, bytes int) (url string, sum [32]byte) {
	n.t.Helper()
	dir, file := n.t.TempDir(), content(bytes)
	put(n.t, filepath.Join(dir, "file"), file)
	if err := os.Chmod(dir, 0o755); err != nil {
		n.t.Fatal(err)
	}
	config := put(n.t, filepath.Join(dir, "nginx.conf"), fmt.Sprintf(`daemon off; user root; worker_processes 1; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http { access_log off; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2; fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
	server { listen %[2]s fastopen=16; root %[1]s; } }`, dir, net.JoinHostPort(plain(f.server), "80")))
	n.up(f, "80", n.server.Start(n.t, nstest.Program(n.t, "nginx", "nginx-light"), "-c", config, "-e", dir+"/error.log"))
	return "http://" + net.JoinHostPort(plain(f.server), "80") + "/file", sha256.Sum256([]byte(file))
}

func sumOf(t *testing.T, path string) [32]byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		t.Fatal(err)
	}
	return [32]byte(h.Sum(nil))
}

// each runs f for each family, in one network whose agents speak IPv6 to each other.
func each(t *testing.T, f func(t *testing.T, n *network, of family)) {
	n := newNetwork(t)
	n.both()
	for _, of := range families {
		t.Run(of.name, func(t *testing.T) {
			m := *n
			m.t = t
			f(t, &m, of)
		})
	}
}
