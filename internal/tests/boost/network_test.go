package boost

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/boost/boostd"
	"scaffold.dev/scaffold/internal/controller/controld"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/trust"
)

// What this binary is to be besides the tests: an agent by the file that it names.
const agentEnv = "SCAFFOLD_TEST_BOOSTD"

func TestMain(m *testing.M) {
	path := os.Getenv(agentEnv)
	if path == "" {
		nstest.Main(m)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if boostd.IsWorker() {
		if err := boostd.Work(ctx, log); err != nil {
			fmt.Println("worker:", err)
		}
		return
	}
	s, err := boostd.Read(path)
	if err == nil {
		err = boostd.Run(ctx, s, log, boostd.Manager{Ready: func() { fmt.Println("ready") }})
	}
	fmt.Println("ended:", err)
}

// The addresses of the network: client, router x, router y, server, in a row.
const (
	client, atX   = "10.1.0.2", "10.1.0.1"
	x, y          = "10.9.0.1", "10.9.0.2"
	atY, server   = "10.2.0.1", "10.2.0.2"
	east, west    = "10.1.0.0/24", "10.2.0.0/24"
	bits          = "/24"
	serverAndPort = server + ":9"
)

// A network is a client, two routers with agents, a server, and a controller whom the agents reach by its socket.
type network struct {
	t                    *testing.T
	client, x, y, server *nstest.NS
	dir                  string
	agents               map[string]*nstest.Proc
	boost                apiv1connect.BoostClient
	trust                apiv1connect.TrustClient
	door                 net.Listener // of the controller, in a network with keys; else agents reach its socket
	ends                 ends
	clientPort           int                         // that the next connection comes from; 0: any
	capabilities         string                      // that agents have, of all that root has; "": all
	places               map[string]place            // of agents
	beside               func(context.Context) error // what else runs in the controller's process; nil: nothing

	stop context.CancelFunc // of the controller; nil: it is away
	over chan error
}

// ends are the addresses of both hosts, and the port of the server's that connections go to.
type ends struct{ client, server, port string }

// A place is where an agent runs.
type place struct {
	ns    *nstest.NS
	door  string // address
	ports string
	more  string // lines of its file
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := bare(t)
	n.control()
	return n
}

// newNetworkWithKeys has a controller whom agents reach at x, over TLS.
func newNetworkWithKeys(t *testing.T) *network {
	t.Helper()
	n := bare(t)
	n.door = n.x.Listen(t, "tcp", x+":23728")
	n.control()
	return n
}

// bare is a network without a controller.
func bare(t *testing.T) *network {
	t.Helper()
	nstest.Root(t)
	n := &network{t: t, client: nstest.New(t, "client"), x: nstest.New(t, "x"), y: nstest.New(t, "y"), server: nstest.New(t, "server"), agents: map[string]*nstest.Proc{}}
	n.ends = ends{client, server, "9"}
	n.places = map[string]place{"x": {ns: n.x, door: x, ports: "p0, p1"}, "y": {ns: n.y, door: y, ports: "p0, p1"}}
	n.directory()
	nstest.Veth(t, n.client, "eth0", n.x, "p0")
	nstest.Veth(t, n.x, "p1", n.y, "p1")
	nstest.Veth(t, n.y, "p0", n.server, "eth0")
	for _, a := range []struct {
		at            *nstest.NS
		dev, own, via string
		to            string
	}{
		{n.client, "eth0", client, atX, "0.0.0.0/0"}, {n.server, "eth0", server, atY, "0.0.0.0/0"},
		{n.x, "p0", atX, "", ""}, {n.y, "p0", atY, "", ""}, {n.x, "p1", x, y, west}, {n.y, "p1", y, x, east},
	} {
		a.at.Addr(t, a.dev, a.own+bits)
		if a.via != "" {
			a.at.Route(t, a.to, a.via, a.dev)
		}
	}
	for _, r := range []*nstest.NS{n.x, n.y} {
		r.Forward(t)
		r.Sysctl(t, "net/ipv4/ip_forward", "1")
	}
	return n
}

// directory makes one for what the daemons keep, and clients of the controller that will have its socket there.
func (n *network) directory() {
	n.t.Helper()
	dir, err := os.MkdirTemp("", "boost") // t.TempDir has too long a path for a socket
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { os.RemoveAll(dir) })
	n.dir = dir
	hc, base, err := api.Dial("unix:" + n.socket())
	if err != nil {
		n.t.Fatal(err)
	}
	n.boost, n.trust = apiv1connect.NewBoostClient(hc, base), apiv1connect.NewTrustClient(hc, base)
}

// member puts a credential where an agent looks for its own.
func (n *network) member(agent string, role trust.Role, name string) {
	n.t.Helper()
	dir := trust.Directory(filepath.Join(n.dir, agent))
	key, err := dir.Key()
	if err != nil {
		n.t.Fatal(err)
	}
	c, err := n.trust.Issue(n.t.Context(), connect.NewRequest(&apiv1.IssueRequest{Role: string(role), Name: name, Key: key.Public().(ed25519.PublicKey)}))
	if err != nil {
		n.t.Fatal(err)
	}
	if err := dir.Save(trust.Credential{Certificate: c.Msg.Certificate, Roots: c.Msg.Roots}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *network) socket() string { return filepath.Join(n.dir, "s") }

// control starts the controller, on what was stored.
func (n *network) control() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	n.stop, n.over = cancel, over
	cfg := config.Config{Trust: config.TrustOpen, Network: "test", Socket: n.socket(), Data: filepath.Join(n.dir, "data"), Beside: n.beside}
	if n.door != nil {
		cfg.Trust, cfg.Doors = config.TrustKeys, []net.Listener{n.door}
	}
	go func() {
		over <- controld.Run(ctx, cfg, slog.New(slog.NewTextHandler(n.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	}()
	n.t.Cleanup(func() { n.away() })
	nstest.Wait(n.t, "the controller's log", func() error {
		_, err := n.list()
		return err
	})
}

// away stops the controller.
func (n *network) away() {
	if n.stop == nil {
		return
	}
	n.stop()
	n.stop = nil
	if err := <-n.over; err != nil {
		n.t.Errorf("the controller ended with %v", err)
	}
}

func (n *network) list() (*apiv1.ListBoostResponse, error) {
	all, err := n.boost.ListBoost(context.Background(), connect.NewRequest(&apiv1.ListBoostRequest{}))
	if err != nil {
		return nil, err
	}
	return all.Msg, nil
}

// sites says which hosts are where, and that x and y serve them.
func (n *network) sites() {
	n.t.Helper()
	for _, s := range []*apiv1.BoostSite{{Name: "east", Prefixes: []string{east}, Agents: []string{"x"}}, {Name: "west", Prefixes: []string{west}, Agents: []string{"y"}}} {
		if _, err := n.boost.SetBoostSite(n.t.Context(), connect.NewRequest(s)); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *network) allow() {
	n.t.Helper()
	if _, err := n.boost.AllowBoost(n.t.Context(), connect.NewRequest(&apiv1.BoostEntry{Name: "all", Client: east, Server: west})); err != nil {
		n.t.Fatal(err)
	}
}

// boosts has both agents carry what the client asks of the server.
func (n *network) boosts() {
	n.t.Helper()
	n.sites()
	n.start("x")
	n.start("y")
	n.settled()
	n.allow()
	n.settled()
}

// start starts an agent.
func (n *network) start(name string) {
	n.t.Helper()
	where := n.places[name]
	path := filepath.Join(n.dir, name+".yaml")
	at := "unix:" + n.socket()
	if n.door != nil {
		at = "https://" + n.door.Addr().String()
	}
	text := fmt.Sprintf("name: %s\ndoor: %s\nports: [%s]\nmemory: 8\ncontrollers: [%q]\ncredentials: %s\n%s", name, where.door, where.ports, at, filepath.Join(n.dir, name), where.more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	cmd := n.program()
	cmd.Env = append(os.Environ(), agentEnv+"="+path)
	n.agents[name] = where.ns.StartCmd(n.t, cmd)
	n.agents[name].WaitFor(n.t, "ready")
}

// settled waits until the agents have applied what the controller wants, and their trunk is there.
func (n *network) settled() {
	n.t.Helper()
	nstest.Wait(n.t, "what agents said", func() error {
		all, err := n.list()
		if err != nil {
			return err
		}
		for _, a := range all.Agents {
			if !a.Current || len(a.Trunks) != 1 || !a.Trunks[0].Up {
				return fmt.Errorf("agent %v; x said %s, y said %s", a, n.said("x"), n.said("y"))
			}
		}
		if len(all.Agents) != 2 {
			return fmt.Errorf("agents: %v", all.Agents)
		}
		return nil
	})
}

// program is this binary, as an agent.
func (n *network) program() *exec.Cmd {
	if n.capabilities == "" {
		return exec.Command("/proc/self/exe")
	}
	self, err := os.Executable() // /proc/self/exe would be setpriv there
	if err != nil {
		n.t.Fatal(err)
	}
	set := "-all"
	for c := range strings.FieldsSeq(n.capabilities) {
		set += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
	}
	return exec.Command("setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set="+set, "--", self)
}

func (n *network) said(agent string) string {
	if p := n.agents[agent]; p != nil {
		return p.Output()
	}
	return "not started\n"
}

// A flow is a connection from client to server.
type flow struct{ client, server net.Conn }

// connect makes one.
func (n *network) connect() flow {
	n.t.Helper()
	to := net.JoinHostPort(n.ends.server, n.ends.port)
	l := n.server.Listen(n.t, "tcp", to)
	defer l.Close()
	c, err := n.dial(to)
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close(); s.Close() })
	if got, _, _ := net.SplitHostPort(s.RemoteAddr().String()); got != n.ends.client {
		n.t.Errorf("the server sees %s", got)
	}
	return flow{c, s}
}

// dial connects from any port of the client's, or from one after the other.
func (n *network) dial(to string) (c net.Conn, err error) {
	if n.clientPort == 0 {
		return n.client.Dial("tcp", to)
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{Port: n.clientPort}}
	n.clientPort--
	n.client.Do(func() { c, err = d.DialContext(n.t.Context(), "tcp", to) })
	return c, err
}

// boosted reports whether a connection is carried: the agent at the server has a socket in the client's name.
func (n *network) boosted(f flow) bool {
	n.t.Helper()
	_, port, _ := net.SplitHostPort(f.client.LocalAddr().String())
	for _, at := range n.places {
		// Both agents have a socket with the client's port; that in its name has the server at its other end.
		if strings.Contains(at.ns.Run(n.t, "ss", "-Htn", "sport", "=", port), n.ends.server) {
			return true
		}
	}
	return false
}

// carried waits until connections are boosted, or are not any more.
func (n *network) carried(want bool) flow {
	n.t.Helper()
	var f flow
	nstest.Wait(n.t, "what agents said", func() error {
		if f = n.connect(); n.boosted(f) != want {
			f.client.Close()
			f.server.Close()
			all, err := n.list()
			return fmt.Errorf("boosted: %v; the controller says %v, %v; x said %s, y said %s", !want, all, err, n.said("x"), n.said("y"))
		}
		return nil
	})
	return f
}

// echoes says something both ways over a connection.
func (n *network) echoes(f flow, what string) {
	n.t.Helper()
	for _, way := range [][2]net.Conn{{f.client, f.server}, {f.server, f.client}} {
		if _, err := way[0].Write([]byte(what)); err != nil {
			n.t.Fatalf("%s: %v", what, err)
		}
		got := make([]byte, len(what))
		if _, err := readFull(way[1], got); err != nil || string(got) != what {
			n.t.Fatalf("%s: heard %q, %v", what, got, err)
		}
	}
}
