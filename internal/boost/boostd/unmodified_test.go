package boostd

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// Programs between which two agents carry every connection. None of them is told, and each gets what it would have got.

// carries runs f and fails where none of its connections was carried: for each, the far agent opens one of its own.
func (n *network) carries(f func()) {
	n.t.Helper()
	before := n.opened()
	f()
	if n.opened() == before {
		n.t.Errorf("no connection was carried\nx: %s\ny: %s", n.agents["x"].Output(), n.agents["y"].Output())
	}
}

// opened counts the connections that the far agent's machine has begun (tcpActiveOpens, RFC 4022).
func (n *network) opened() (count string) {
	n.t.Helper()
	var names []string
	for line := range strings.Lines(n.y.Run(n.t, "cat", "/proc/net/snmp")) {
		w := strings.Fields(line)
		switch {
		case w[0] == "Tcp:" && names == nil:
			names = w
		case w[0] == "Tcp:":
			for i, name := range names {
				if name == "ActiveOpens" {
					return w[i]
				}
			}
		}
	}
	n.t.Fatal("/proc/net/snmp has no ActiveOpens")
	return ""
}

// up waits until somebody listens at a port of the server; who asks is on its machine.
func (n *network) up(f family, port string, p *nstest.Proc) {
	n.t.Helper()
	nstest.Wait(n.t, "the server printed: "+p.Output(), func() error {
		c, err := n.server.Dial("tcp", net.JoinHostPort(plain(f.server), port))
		if err == nil {
			c.Close()
		}
		return err
	})
}

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// content is so many bytes of which no two parts are alike.
func content(size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return string(b)
}

func same(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s has %d bytes of %d, or others", path, len(got), len(want))
	}
}

func TestRsyncGoesBothWays(t *testing.T) {
	safety.Test(t, safety.Bytes)
	rsync := nstest.Program(t, "rsync", "rsync")
	each(t, func(t *testing.T, n *network, f family) {
		dir, at, file := t.TempDir(), t.TempDir(), content(8<<20)
		files := filepath.Join(dir, "files")
		if err := os.Mkdir(files, 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(files, "down"), file)
		config := put(t, filepath.Join(dir, "rsyncd.conf"), fmt.Sprintf(`
use chroot = no
reverse lookup = no
uid = root
gid = root
address = %[2]s
log file = %[1]s/log
pid file = %[1]s/pid
[files]
path = %[1]s/files
read only = no
`, dir, plain(f.server)))
		p := n.server.Start(t, rsync, "--daemon", "--no-detach", "--config="+config)
		n.up(f, "873", p)
		url := "rsync://" + net.JoinHostPort(plain(f.server), "873") + "/files/"
		n.carries(func() { n.client.Run(t, rsync, "-a", url, at) })
		same(t, filepath.Join(at, "down"), file)
		put(t, filepath.Join(at, "up"), file)
		n.carries(func() { n.client.Run(t, rsync, "-a", at+"/", url) })
		same(t, filepath.Join(files, "up"), file)
	})
}

func TestSSHCarriesFilesAndExitCodes(t *testing.T) {
	safety.Test(t, safety.Bytes)
	nstest.Program(t, "ssh", "openssh-client")
	sshd := nstest.Program(t, "/usr/sbin/sshd", "openssh-server")
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd asks for it; /run is the tests' own
		t.Fatal(err)
	}
	each(t, func(t *testing.T, n *network, f family) {
		dir, file := t.TempDir(), content(4<<20)
		for _, key := range []string{"host", "user"} {
			n.client.Run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key))
		}
		user, err := os.ReadFile(filepath.Join(dir, "user.pub"))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "authorized"), string(user))
		config := put(t, filepath.Join(dir, "config"), fmt.Sprintf("ListenAddress %[2]s\nHostKey %[1]s/host\nAuthorizedKeysFile %[1]s/authorized\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nUseDNS no\n",
			dir, plain(f.server)))
		n.up(f, "22", n.server.Start(t, sshd, "-D", "-e", "-f", config))
		ssh := []string{"ssh", "-F", "none", "-i", filepath.Join(dir, "user"), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=" + filepath.Join(dir, "known"), "-o", "LogLevel=ERROR", "root@" + plain(f.server)}
		put(t, filepath.Join(dir, "up"), file)
		n.carries(func() {
			n.client.Run(t, "sh", "-c", strings.Join(ssh, " ")+" 'cat >"+dir+"/there' <"+dir+"/up")
			n.client.Run(t, "sh", "-c", strings.Join(ssh, " ")+" 'cat "+dir+"/there' >"+dir+"/down")
		})
		same(t, filepath.Join(dir, "down"), file)
		if out, err := n.client.Try(append(ssh, "exit 7")...); err == nil || !strings.Contains(err.Error(), "7") {
			t.Errorf("exit 7 at the server: %v\n%s", err, out)
		}
	})
}

// A request in the SYN: the near agent answers for the server, and takes none. The client's kernel sends it again, once.
func TestFastOpenFallsBack(t *testing.T) {
	safety.Test(t, safety.Bytes)
	curl := nstest.Program(t, "curl", "curl")
	each(t, func(t *testing.T, n *network, f family) {
		for _, ns := range []*nstest.NS{n.client, n.server} {
			ns.Sysctl(t, "net/ipv4/tcp_fastopen", "1027") // both sides, and without a cookie: data is in the first SYN
		}
		url, sum := n.serve(f, 1<<20)
		n.carries(func() {
			for i := range 3 {
				out := filepath.Join(t.TempDir(), fmt.Sprint(i))
				n.client.Run(t, curl, "-sS", "-g", "--tcp-fastopen", "-o", out, url)
				if sumOf(t, out) != sum {
					t.Error("another file")
				}
			}
		})
	})
}

// The end of a file is told by a FIN while the other direction is open.
func TestNetcatEndsAFileByItsFIN(t *testing.T) {
	safety.Test(t, safety.Bytes)
	nc := nstest.Program(t, "/bin/nc.openbsd", "netcat-openbsd")
	each(t, func(t *testing.T, n *network, f family) {
		dir, file := t.TempDir(), content(3<<20)
		put(t, filepath.Join(dir, "file"), file)
		p := n.server.Start(t, "sh", "-c", "echo thanks | "+nc+" -n -v -N -l "+plain(f.server)+" 7 >"+dir+"/got")
		p.WaitFor(t, "Listening")
		var out string
		n.carries(func() { out = n.client.Run(t, "sh", "-c", nc+" -n -N "+plain(f.server)+" 7 <"+dir+"/file") })
		if err := p.Wait(); err != nil || out != "thanks\n" {
			t.Errorf("the server ended with %v, its client heard %q", err, out)
		}
		same(t, filepath.Join(dir, "got"), file)
	})
}

// A client that offers MPTCP gets plain TCP, as from a server that has none.
func TestMultipathFallsBack(t *testing.T) {
	safety.Test(t, safety.Bytes)
	each(t, func(t *testing.T, n *network, f family) {
		l := n.server.Listen(t, "tcp", net.JoinHostPort(plain(f.server), "7"))
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { defer c.Close(); io.Copy(c, c) }()
			}
		}()
		n.carries(func() {
			var c net.Conn
			var err error
			n.client.Do(func() { // the socket is of the namespace in which it is made
				d := net.Dialer{}
				d.SetMultipathTCP(true)
				c, err = d.Dial("tcp", l.Addr().String())
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if multipath, err := c.(*net.TCPConn).MultipathTCP(); err != nil || multipath {
				t.Errorf("the agent's end speaks MPTCP: %v, %v", multipath, err)
			}
			said := []byte(content(1 << 20))
			go func() { c.Write(said); c.(*net.TCPConn).CloseWrite() }()
			if heard, err := io.ReadAll(c); err != nil || !bytes.Equal(heard, said) {
				t.Errorf("%d bytes of %d came back, or others: %v", len(heard), len(said), err)
			}
		})
	})
}

// Each leg has its own MTU: one side with large frames, the other behind a narrow link.
func TestLegsHaveTheirOwnMTU(t *testing.T) {
	safety.Test(t, safety.Bytes)
	curl := nstest.Program(t, "curl", "curl")
	n := newNetwork(t)
	for _, end := range []struct {
		ns       *nstest.NS
		dev, mtu string
	}{{n.client, "eth0", "9000"}, {n.x, "p0", "9000"}, {n.y, "p0", "1280"}, {n.server, "eth0", "1280"}} {
		end.ns.Run(t, "ip", "link", "set", "dev", end.dev, "mtu", end.mtu)
	}
	n.both()
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			m := *n
			m.t = t
			url, sum := m.serve(f, 8<<20)
			out := filepath.Join(t.TempDir(), "file")
			m.carries(func() { m.client.Run(t, curl, "-sS", "-g", "-o", out, url) })
			if sumOf(t, out) != sum {
				t.Error("another file")
			}
		})
	}
}

// A router behind the far agent says that its next link is narrower. It says so to the client, in whose name the far agent
// sends; the client knows nothing of such segments.
func TestAPathMayNarrowBehindTheFarAgent(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n := narrowed(t, "1280")
	n.both()
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			m := *n
			m.t = t
			l := m.server.Listen(t, "tcp", net.JoinHostPort(plain(f.server), "7"))
			m.carries(func() {
				c, err := m.client.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				s, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				said := []byte(content(4 << 20))
				go func() { c.Write(said); c.(*net.TCPConn).CloseWrite() }()
				s.SetReadDeadline(time.Now().Add(nstest.Deadline))
				if heard, err := io.ReadAll(s); err != nil || !bytes.Equal(heard, said) {
					t.Errorf("%d bytes of %d arrived, or others: %v\n%s", len(heard), len(said), err, m.y.Run(t, "ss", "-Htnoi", "dport", "=", "7"))
				}
			})
		})
	}
}

// BGP with a password (TCP-MD5) passes: nobody between its ends could sign.
func TestProtectedBGPPasses(t *testing.T) {
	bgpd := nstest.Program(t, "/usr/lib/frr/bgpd", "frr")
	each(t, func(t *testing.T, n *network, f family) {
		speak := func(ns *nstest.NS, own, other string) *nstest.Proc {
			dir := t.TempDir()
			kind := strings.ToLower(f.name) + " unicast"
			config := put(t, filepath.Join(dir, "bgpd.conf"), fmt.Sprintf(`log stdout informational
router bgp 65000
 bgp router-id %[3]s
 bgp log-neighbor-changes
 neighbor %[2]s remote-as 65000
 neighbor %[2]s password secret
 neighbor %[2]s update-source %[1]s
 neighbor %[2]s timers connect 1
 address-family %[4]s
  neighbor %[2]s activate
`, own, other, map[bool]string{true: "1.1.1.1", false: "2.2.2.2"}[ns == n.client], kind))
			return ns.Start(t, bgpd, "-Z", "-n", "-S", "-f", config, "-i", filepath.Join(dir, "pid"), "--vty_socket", dir, "-P", "0", "--log", "stdout")
		}
		client := speak(n.client, plain(f.client), plain(f.server))
		server := speak(n.server, plain(f.server), plain(f.client))
		established := regexp.MustCompile(`ADJCHANGE: neighbor ` + regexp.QuoteMeta(plain(f.server)) + `\(.*\) in vrf \S+ Up`)
		nstest.Wait(t, "what bgpd printed at both ends", func() error {
			if !established.MatchString(client.Output()) {
				return fmt.Errorf("no session yet\nclient: %s\nserver: %s", client.Output(), server.Output())
			}
			return nil
		})
		if out := n.y.Run(t, "ss", "-Htn", "( sport = 179 or dport = 179 )"); out != "" {
			t.Errorf("the far agent is between them:\n%s", out)
		}
	})
}

// A server that does not read stops its client: the kernel of that one asks for a window (persist timer), what is on its
// way stays bounded, and arrives once the server reads.
func TestAServerThatDoesNotReadStopsItsClient(t *testing.T) {
	safety.Test(t, safety.Bytes)
	const (
		all   = 200 << 20
		bound = 64 << 20 // 8 MiB of each agent for the trunk, and at most 6 MiB in each of six buffers of kernels
	)
	each(t, func(t *testing.T, n *network, f family) {
		l := n.server.Listen(t, "tcp", net.JoinHostPort(plain(f.server), "7"))
		n.carries(func() {
			c, err := n.client.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			said := []byte(content(1 << 20))
			var sent atomic.Int64
			go func() {
				for range all / len(said) {
					k, err := c.Write(said)
					if sent.Add(int64(k)); err != nil {
						return // it is shorter at the other end
					}
				}
				c.(*net.TCPConn).CloseWrite()
			}()
			nstest.Wait(t, "ss -to at the client", func() error {
				if out := n.client.Run(t, "ss", "-Htno", "dport", "=", "7"); !strings.Contains(out, "timer:(persist") {
					return fmt.Errorf("its kernel does not wait for a window: %s", out)
				}
				return nil
			})
			if got := sent.Load(); got > bound {
				t.Errorf("%d MiB are on their way to a server that reads nothing", got>>20)
			}
			heard, part := 0, make([]byte, len(said))
			for {
				k, err := io.ReadFull(s, part)
				if heard += k; err == io.EOF {
					break
				}
				if err != nil || !bytes.Equal(part, said) {
					t.Fatalf("after %d bytes others than were sent, or none: %v", heard, err)
				}
			}
			if heard != all {
				t.Errorf("%d bytes of %d arrived", heard, all)
			}
		})
	})
}
