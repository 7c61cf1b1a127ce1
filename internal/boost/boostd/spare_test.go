package boostd

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// withSpare is a network whose client has two routers, x and s, each with an agent and a way of its own to y.
//
//	        x
//	client     y   server
//	        s
//
// What the client says goes to x until turn.
type withSpare struct {
	*network
	s *nstest.NS
}

const yDoor, sDoor = "fd0a::1", "fd08::1"

func newWithSpare(t *testing.T) *withSpare {
	t.Helper()
	n := &withSpare{network: newNetwork(t), s: nstest.New(t, "s")}
	nstest.Veth(t, n.client, "eth1", n.s, "p0")
	nstest.Veth(t, n.s, "p1", n.y, "p2")
	n.s.Forward(t)
	n.s.Sysctl(t, "net/ipv4/ip_forward", "1")
	for i, f := range families {
		at := [][4]string{{"10.5.0.2/24", "10.5.0.1/24", "10.8.0.1/24", "10.8.0.2/24"}, {"fd05::2/64", "fd05::1/64", sDoor + "/64", "fd08::2/64"}}[i]
		n.client.Addr(t, "eth1", at[0])
		n.s.Addr(t, "p0", at[1])
		n.s.Addr(t, "p1", at[2])
		n.y.Addr(t, "p2", at[3])
		n.s.Route(t, f.clients, plain(at[0]), "p0")
		n.s.Route(t, f.servers, plain(at[3]), "p1")
	}
	n.y.Addr(t, "lo", yDoor+"/128")
	n.x.Route(t, yDoor+"/128", plain(families[1].y), "p1")
	n.s.Route(t, yDoor+"/128", "fd08::2", "p1")
	doors := map[string]string{"x": plain(families[1].x), "s": sDoor, "y": yDoor}
	n.run("y", n.y, "[p0, p1, p2]", doors, "x", "s")
	n.run("s", n.s, "[p0, p1]", doors, "x", "y")
	n.run("x", n.x, "[p0, p1]", doors, "s", "y")
	n.carried()
	return n
}

// run starts an agent that knows the others by their doors.
func (n *withSpare) run(name string, at *nstest.NS, ports string, doors map[string]string, others ...string) {
	n.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ndoor: %q\nports: %s\nkey: %s\nmemory: 16\nlimit: 800\nagents:\n", name, doors[name], ports, filepath.Join(n.dir, name+".key"))
	for _, o := range others {
		key, _, err := Key(filepath.Join(n.dir, o+".key"))
		if err != nil {
			n.t.Fatal(err)
		}
		fmt.Fprintf(&b, "  %s: {door: %q, key: %s}\n", o, doors[o], Public(key))
	}
	b.WriteString("lanes:\n")
	for _, f := range families {
		fmt.Fprintf(&b, "- {client: %[1]s, server: %[2]s, near: [x, s], far: [y]}\n- {client: %[2]s, server: %[1]s, near: [y], far: [x, s]}\n", f.clients, f.servers)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), agentEnv+"="+put(n.t, filepath.Join(n.dir, name+".yaml"), b.String()))
	n.agents[name] = at.StartCmd(n.t, cmd)
	n.agents[name].WaitFor(n.t, "ready")
}

// spareReady waits until the server's agent has a trunk to the spare one.
func (n *withSpare) spareReady() {
	n.t.Helper()
	nstest.Wait(n.t, "ss -tn at s; s printed: "+n.agents["s"].Output(), func() error {
		if out := n.s.Run(n.t, "ss", "-Htn", "state", "established", "dst", "["+yDoor+"]"); strings.Count(out, "\n") < 4 {
			return errors.New(out)
		}
		return nil
	})
}

// lose takes the machine of x away: nothing comes from it or goes to it.
func (n *withSpare) lose() {
	n.t.Helper()
	n.x.Run(n.t, "sh", "-c", "ip link set p0 down; ip link set p1 down")
}

// turn has the client's segments go by s.
func (n *withSpare) turn() {
	n.t.Helper()
	for i, f := range families {
		n.client.Run(n.t, "ip", "route", "replace", f.all, "via", []string{"10.5.0.1", "fd05::1"}[i], "dev", "eth1")
	}
}

// A download under which the client's agent loses its power: it goes on by another one, and nothing of it is missing.
func TestADownloadOutlivesTheClientsAgent(t *testing.T) {
	safety.Test(t, safety.Bytes)
	curl := nstest.Program(t, "curl", "curl")
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			n := newWithSpare(t)
			n.spareReady()
			url, want := n.serve(f, 250<<20)
			path := filepath.Join(t.TempDir(), "file")
			p := n.client.Start(t, curl, "-sS", "-g", "-o", path, "--max-time", "60", "-w", "done %{http_code} %{size_download}\n", url)
			grown(t, path, 50<<20)
			n.lose()
			n.turn()
			stood := standstill(t, path)
			p.WaitFor(t, "done 200")
			if got := sumOf(t, path); got != want {
				t.Errorf("the file is another one\ny: %s\ns: %s", n.agents["y"].Output(), n.agents["s"].Output())
			}
			if out := n.agents["y"].Output(); !strings.Contains(out, "another agent goes on with a session") {
				t.Errorf("it did not go on by the other agent\ny: %s", out)
			}
			t.Logf("it stood still for %v", stood)
		})
	}
}

// grown waits until a file has so many bytes.
func grown(t *testing.T, path string, bytes int64) {
	t.Helper()
	nstest.Wait(t, "the file "+path, func() error {
		i, err := os.Stat(path)
		if err == nil && i.Size() < bytes {
			err = fmt.Errorf("%d bytes", i.Size())
		}
		return err
	})
}

// standstill waits until a file grows again that has just stopped to.
func standstill(t *testing.T, path string) time.Duration {
	t.Helper()
	size, begin := int64(0), time.Now()
	for end := begin.Add(nstest.Deadline); time.Now().Before(end); {
		i, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		switch stood := time.Since(begin); {
		case i.Size() == size:
		case stood > 100*time.Millisecond:
			return stood
		default:
			size, begin = i.Size(), time.Now()
		}
	}
	t.Errorf("it stands still at %d bytes", size)
	return 0
}

// wentOn waits until the server's agent says that the spare one goes on with a session.
func (n *withSpare) wentOn() {
	n.t.Helper()
	n.agents["y"].WaitFor(n.t, "another agent goes on with a session")
}

// The same with the two sides the other way round: what is lost is the agent of the host that is connected to, and receives.
func TestAnUploadOutlivesTheServersAgent(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			n := newWithSpare(t)
			n.spareReady()
			l := n.client.Listen(t, "tcp", net.JoinHostPort(plain(f.client), "80"))
			c, err := n.server.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			file := []byte(content(48 << 20))
			want, got := sha256.Sum256(file), sha256.New()
			wrote := make(chan error, 1)
			go func() {
				_, err := c.Write(file)
				wrote <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
			}()
			if _, err := io.CopyN(got, s, 10<<20); err != nil {
				t.Fatal(err)
			}
			n.lose()
			n.turn()
			s.SetDeadline(time.Now().Add(nstest.Deadline))
			if _, err := io.Copy(got, s); err != nil || [32]byte(got.Sum(nil)) != want {
				t.Errorf("what arrived is another file, or not whole: %v\ny: %s\ns: %s", err, n.agents["y"].Output(), n.agents["s"].Output())
			}
			must(t, nstest.Receive(t, "the end of the upload", wrote))
			n.wentOn()
			s.Write([]byte("thanks")) // nobody else has said anything to the one that sends
			s.(*net.TCPConn).CloseWrite()
			c.SetDeadline(time.Now().Add(nstest.Deadline))
			if b, err := io.ReadAll(c); err != nil || string(b) != "thanks" {
				t.Errorf("%q came back, %v", b, err)
			}
		})
	}
}

// The client's agent was not lost, but cut off from the server's. By the time it gives its connections up another one has
// them: it says nothing to the client.
func TestAnAgentThatWasCutOffDisturbsNobody(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			n := newWithSpare(t)
			n.spareReady()
			c, s := n.connect(f, "7")
			must(t, say(c, s, "before"), say(s, c, "before"))
			n.x.Run(t, "ip", "link", "set", "p1", "down")
			n.turn()
			n.wentOn()
			// Nothing is said meanwhile: a reset of the agent that was cut off would have the number that the client expects.
			n.agents["x"].WaitFor(t, "a session was cut")
			nstest.Wait(t, "ss -tn at x; x printed: "+n.agents["x"].Output(), func() error {
				if out := n.x.Run(t, "ss", "-Htn", "dst", "["+plain(f.client)+"]"); out != "" {
					return errors.New(out)
				}
				return nil
			})
			must(t, say(c, s, "after"), say(s, c, "after"))
		})
	}
}

// Where the client still speaks to the agent that was cut off nobody goes on, and both ends are reset in the end.
func TestWhereNoWayTurnsNobodyGoesOn(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n, f := newWithSpare(t), families[0]
	n.spareReady()
	c, s := n.connect(f, "7")
	must(t, say(c, s, "before"), say(s, c, "before"))
	n.x.Run(t, "ip", "link", "set", "p1", "down")
	for name, end := range map[string]*net.TCPConn{"client": c, "server": s} {
		end.SetDeadline(time.Now().Add(nstest.Deadline))
		if _, err := end.Read(make([]byte, 1)); !isReset(err) {
			t.Errorf("the %s got %v; want a reset\nx: %s\ny: %s", name, err, n.agents["x"].Output(), n.agents["y"].Output())
		}
	}
}

// Workers of the agent that has taken a connection over, and of the one that has asked it, are followed by others: these count
// on from where the connection was taken over, or from where it began.
func TestWorkersAreReplacedUnderWhatWasTakenOver(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			n := newWithSpare(t)
			n.spareReady()
			c, s := n.connect(f, "7")
			must(t, say(c, s, "before"), say(s, c, "before"))
			n.lose()
			n.turn()
			n.wentOn()
			file, got := []byte(content(32<<20)), make(chan error, 1)
			go func() {
				b, err := io.ReadAll(c)
				if err == nil && string(b) != string(file) {
					err = fmt.Errorf("%d bytes of %d, or others", len(b), len(file))
				}
				got <- err
			}()
			sent := make(chan error, 1)
			go func() {
				_, err := s.Write(file)
				sent <- errors.Join(err, s.CloseWrite())
			}()
			for range 3 {
				must(t, say(c, s, "meanwhile"))
				n.kill("s", syscall.SIGKILL)
				must(t, say(c, s, "meanwhile"))
				n.kill("y", syscall.SIGKILL)
			}
			must(t, say(c, s, "meanwhile"), nstest.Receive(t, "the end of what is sent", sent))
			must(t, nstest.Receive(t, "the client's file; s printed: "+n.agents["s"].Output(), got))
			c.CloseWrite()
			if b, err := io.ReadAll(s); err != nil || len(b) > 0 {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// say says something at one end of a connection and wants it at the other.
func say(from, to *net.TCPConn, what string) error {
	to.SetReadDeadline(time.Now().Add(nstest.Deadline))
	if _, err := from.Write([]byte(what)); err != nil {
		return err
	}
	b := make([]byte, len(what))
	if _, err := io.ReadFull(to, b); err != nil || string(b) != what {
		return fmt.Errorf("%q came, in place of %q: %w", b, what, err)
	}
	return nil
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// An upload under which the client's agent loses its power: what that has acknowledged exists nowhere else. Both ends are
// reset, and the server never takes what it got for all.
func TestAnUploadIsResetWithTheClientsAgent(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			n := newWithSpare(t)
			n.spareReady()
			l := n.server.Listen(t, "tcp", net.JoinHostPort(plain(f.server), "80"))
			got, ended := make(chan int, 10000), make(chan error, 1)
			file := []byte(content(64 << 20))
			go func() {
				c, err := l.Accept()
				if err != nil {
					ended <- err
					return
				}
				defer c.Close()
				b, all := make([]byte, 1<<20), 0
				for {
					n, err := c.Read(b)
					all += n
					select {
					case got <- all:
					default:
					}
					if err != nil {
						ended <- err
						return
					}
				}
			}()
			c, err := n.client.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			wrote := make(chan error, 1)
			go func() {
				for {
					if _, err := c.Write(file); err != nil {
						wrote <- err
						return
					}
				}
			}()
			for all := 0; all < 10<<20; {
				all = nstest.Receive(t, "the server's bytes", got)
			}
			n.lose()
			n.turn()
			began := time.Now()
			server := nstest.Receive(t, "the end of the stream at the server", ended)
			atServer := time.Since(began)
			client := nstest.Receive(t, "the end of the stream at the client; y printed: "+n.agents["y"].Output()+"\ns: "+n.agents["s"].Output(), wrote)
			if !isReset(server) || !isReset(client) {
				t.Errorf("the server got %v, the client %v; want that both are reset\ny: %s\ns: %s", server, client, n.agents["y"].Output(), n.agents["s"].Output())
			}
			t.Logf("the server was reset after %v, the client after %v at most", atServer, time.Since(began))
		})
	}
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
