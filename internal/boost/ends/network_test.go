package ends

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A network is a client and a server, and between them a router with an agent.
type network struct {
	client, router, server *nstest.NS
	agent                  *nstest.Proc
	ports                  []string
	in                     *os.File // the agent's lines
	asked                  int
}

// A family is what its addresses are in the tests' network.
type family struct{ name, client, server, clientNet, serverNet string }

var families = []family{
	{"IPv4", "10.1.0.2", "10.2.0.2", "10.1.0.0/24", "10.2.0.0/24"},
	{"IPv6", "fd01::2", "fd02::2", "fd01::/64", "fd02::/64"},
}

// at is the server's address with a port.
func (f family) at(port int) string { return net.JoinHostPort(f.server, fmt.Sprint(port)) }

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{client: nstest.New(t, "client"), router: nstest.New(t, "router"), server: nstest.New(t, "server"), ports: []string{"p0", "p1"}}
	nstest.Veth(t, n.client, "eth0", n.router, "p0")
	nstest.Veth(t, n.router, "p1", n.server, "eth0")
	n.router.Forward(t)
	n.router.Sysctl(t, "net/ipv4/ip_forward", "1")
	for _, a := range []struct {
		ns       *nstest.NS
		dev      string
		own, via string
	}{{n.client, "eth0", "10.1.0.2/24", "10.1.0.1"}, {n.server, "eth0", "10.2.0.2/24", "10.2.0.1"}, {n.router, "p0", "10.1.0.1/24", ""}, {n.router, "p1", "10.2.0.1/24", ""},
		{n.client, "eth0", "fd01::2/64", "fd01::1"}, {n.server, "eth0", "fd02::2/64", "fd02::1"}, {n.router, "p0", "fd01::1/64", ""}, {n.router, "p1", "fd02::1/64", ""}} {
		a.ns.Addr(t, a.dev, a.own)
		if a.via != "" {
			all := "0.0.0.0/0"
			if strings.Contains(a.via, ":") {
				all = "::/0"
			}
			a.ns.Route(t, all, a.via, a.dev)
		}
	}
	return n
}

// everything is a lane for each family, of all ports.
func everything() []Lane {
	var all []Lane
	for i, f := range families {
		all = append(all, Lane{Number: uint64(i + 1), Client: netip.MustParsePrefix(f.clientNet), Server: netip.MustParsePrefix(f.serverNet)})
	}
	return all
}

// start starts an agent at the router's ports.
func (n *network) start(t *testing.T, cfg agentConfig) {
	t.Helper()
	cfg.Ports = n.ports
	b, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { write.Close() })
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stdin = append(os.Environ(), agentEnv+"="+string(b)), read
	n.agent, n.in = n.router.StartCmd(t, cmd), write
	read.Close()
	n.agent.WaitFor(t, "ready")
}

// do gives the agent a line and waits until it is done.
func (n *network) do(t *testing.T, word string) {
	t.Helper()
	n.asked++
	token := fmt.Sprint("#", n.asked)
	fmt.Fprintln(n.in, word, token)
	n.agent.WaitFor(t, "done "+token+" <nil>\n")
}

// lanes replaces the agent's.
func (n *network) lanes(t *testing.T, all ...Lane) {
	t.Helper()
	b, _ := json.Marshal(all)
	fmt.Fprintf(n.in, "lanes %s\n", b)
	n.agent.WaitFor(t, fmt.Sprintf("done %s <nil>\n", b))
}

func (n *network) counters(t *testing.T) map[string]uint64 {
	t.Helper()
	n.do(t, "counters")
	out := n.agent.Output()
	_, last, _ := strings.Cut(out[strings.LastIndex(out, "counters {"):], " ")
	last, _, _ = strings.Cut(last, "\n")
	all := map[string]uint64{}
	if err := json.Unmarshal([]byte(last), &all); err != nil {
		t.Fatalf("%v: %q", err, last)
	}
	return all
}

// each runs f once for each family, in a network of its own.
func each(t *testing.T, f func(t *testing.T, n *network, of family)) {
	for _, of := range families {
		t.Run(of.name, func(t *testing.T) { f(t, newNetwork(t), of) })
	}
}

// echo answers each connection with what it says, until it says no more.
func (n *network) echo(t *testing.T, address string) net.Listener {
	t.Helper()
	l := n.server.Listen(t, "tcp", address)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l
}

// talk says something on a connection and wants it back.
func talk(c net.Conn, what string) error {
	if _, err := io.WriteString(c, what); err != nil {
		return err
	}
	b := make([]byte, len(what))
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	if string(b) != what {
		return fmt.Errorf("got %q, expected %q", b, what)
	}
	return nil
}

// finish ends our half and wants the other one to end.
func finish(c net.Conn) error {
	c.(*net.TCPConn).CloseWrite()
	b, err := io.ReadAll(c)
	if err == nil && len(b) > 0 {
		err = fmt.Errorf("%d bytes more", len(b))
	}
	return errors.Join(err, c.Close())
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
