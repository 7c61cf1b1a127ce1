package ends

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestCurlGetsAFile that is right, and ss shows both ends as if there were nothing between them.
func TestCurlGetsAFile(t *testing.T) {
	curl, ss := nstest.Program(t, "curl", "curl"), nstest.Program(t, "ss", "iproute2")
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		file := make([]byte, 20_000_000)
		rand.NewChaCha8([32]byte{1}).Read(file)
		asked, on := make(chan string, 1), make(chan bool)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.RemoteAddr
			<-on
			w.Write(file)
		})}
		go server.Serve(n.server.Listen(t, "tcp", of.at(80)))
		defer server.Close()
		out := filepath.Join(t.TempDir(), "file")
		p := n.client.Start(t, curl, "-sS", "-g", "-o", out, "http://"+of.at(80)+"/")
		client := nstest.Receive(t, n.agent.Output(), asked)
		for _, seen := range []struct{ where, local, remote string }{
			{n.client.Run(t, ss, "-tnHp"), client, of.at(80)}, {n.server.Run(t, ss, "-tnHp"), of.at(80), client},
		} {
			if !shows(seen.where, seen.local, seen.remote) {
				t.Errorf("expected %s with %s, ss shows:\n%s", seen.local, seen.remote, seen.where)
			}
		}
		n.agent.WaitFor(t, "joined "+client)
		close(on)
		if err := p.Wait(); err != nil {
			t.Fatalf("curl: %v\n%s", err, p.Output())
		}
		got, err := os.ReadFile(out)
		if must(t, err); sha256.Sum256(got) != sha256.Sum256(file) {
			t.Errorf("%d of %d bytes, and they differ", len(got), len(file))
		}
	})
}

// shows finds a line with both ends, the local one first.
func shows(lines, local, remote string) bool {
	for line := range strings.Lines(lines) {
		w := strings.Fields(line)
		if len(w) >= 5 && w[3] == local && w[4] == remote {
			return true
		}
	}
	return false
}

// TestAProtectedConnectionPasses: with TCP-MD5, which nobody between the ends could answer.
func TestAProtectedConnectionPasses(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		server := n.signed(t, n.server, of, of.server, of.client)
		client := n.signed(t, n.client, of, of.client, of.server)
		must(t, unix.Listen(server, 5))
		must(t, connect(client, of.server, 80))
		fd, _, err := unix.Accept(server)
		must(t, err)
		defer unix.Close(fd)
		b := make([]byte, 5)
		_, err = unix.Write(client, []byte("hello"))
		must(t, err)
		if got, err := unix.Read(fd, b); err != nil || string(b[:got]) != "hello" {
			t.Errorf("%q, %v", b, err)
		}
		if all := n.counters(t); all["passed_protected"] == 0 || all["held"] > 0 {
			t.Errorf("counters %v", all)
		}
	})
}

// signed is a socket of own, port 80 at the server, that signs what it says to the other.
func (n *network) signed(t *testing.T, in *nstest.NS, of family, own, other string) (fd int) {
	t.Helper()
	domain, port := unix.AF_INET, 0
	if of.name == "IPv6" {
		domain = unix.AF_INET6
	}
	if own == of.server {
		port = 80
	}
	in.Do(func() {
		var err error
		fd, err = unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
	})
	t.Cleanup(func() { unix.Close(fd) })
	sig := &unix.TCPMD5Sig{Keylen: 6}
	copy(sig.Key[:], "secret")
	ip := net.ParseIP(other)
	sig.Addr.Family = uint16(domain)
	if domain == unix.AF_INET {
		copy(sig.Addr.Data[2:], ip.To4()) // behind the port, in sockaddr_in
	} else {
		copy(sig.Addr.Data[6:], ip.To16()) // behind port and flow, in sockaddr_in6
	}
	must(t, unix.SetsockoptTCPMD5Sig(fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, sig))
	must(t, unix.Bind(fd, sockaddr(own, port)))
	return fd
}

func connect(fd int, address string, port int) error {
	return unix.Connect(fd, sockaddr(address, port))
}

func sockaddr(address string, port int) unix.Sockaddr {
	ip := net.ParseIP(address)
	if v4 := ip.To4(); v4 != nil {
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte(v4)}
	}
	return &unix.SockaddrInet6{Port: port, Addr: [16]byte(ip)}
}

// TestFragmentsPass: large pings, and a SYN in two pieces, which arrives as it was sent.
func TestFragmentsPass(t *testing.T) {
	ping := nstest.Program(t, "ping", "iputils-ping")
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		n.client.Run(t, ping, "-c", "1", "-w", "10", "-s", "4000", of.server)
		at, from := n.server.Frames(t, "eth0"), n.client.Frames(t, "eth0")
		f := n.firstFragment(t, of)
		from.Send(t, f)
		tcp := f[len(f)-24:]
		at.Next(t, "fragment of a SYN", func(frame []byte) bool { return bytes.HasSuffix(frame, tcp) })
		if all := n.counters(t); all["passed_fragment"] != 1 || all["held"] > 0 {
			t.Errorf("counters %v", all)
		}
	})
}

// firstFragment is a SYN whose last bytes come later.
func (n *network) firstFragment(t *testing.T, of family) []byte {
	t.Helper()
	b := append(append([]byte{}, n.router.MAC(t, "p0")...), n.client.MAC(t, "eth0")...)
	client, server := net.ParseIP(of.client), net.ParseIP(of.server)
	if v4 := client.To4(); v4 != nil {
		b = append(b, 8, 0, 0x45, 0, 0, 20+24, 0, 9, 0x20, 0, 64, 6, 0, 0)
		b = append(append(b, v4...), server.To4()...)
		sum := ^checksum.Sum(b[14:])
		b[24], b[25] = byte(sum>>8), byte(sum)
	} else {
		b = append(b, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8+24, 44, 64)
		b = append(append(b, client...), server...)
		b = append(b, 6, 0, 0, 1, 0, 0, 0, 9)
	}
	return append(b, 0x9c, 0x40, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0, 0x60, 2, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4)
}

// TestAFileGoesBothWaysThroughKernelsThatOffload, with the sizes at which segments and windows change.
func TestBytesArriveInBothDirections(t *testing.T) {
	safety.Test(t, safety.Bytes)
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		n.echo(t, of.at(80))
		for _, size := range []int{1, 1447, 1448, 1449, 65535, 65536, 3_000_000} {
			c, err := n.client.Dial("tcp", of.at(80))
			must(t, err)
			sent := bytes.Repeat([]byte(fmt.Sprint(size, ",")), size)[:size]
			go func() {
				c.Write(sent)
				c.(*net.TCPConn).CloseWrite()
			}()
			got, err := io.ReadAll(c)
			c.Close()
			if must(t, err); !bytes.Equal(got, sent) {
				t.Errorf("of %d bytes came %d, or others", size, len(got))
			}
		}
	})
}

// TestAClientMayUseItsPortAgain at once, after the server has ended the connection before.
func TestAClientMayUseItsPortAgain(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		l := n.server.Listen(t, "tcp", of.at(80))
		for i := range 3 {
			d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(of.client), Port: 45678}, Control: func(_, _ string, c syscall.RawConn) error {
				return c.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
			}}
			var c net.Conn
			var err error
			n.client.Do(func() { c, err = d.Dial("tcp", of.at(80)) })
			if err != nil {
				t.Fatalf("connection %d: %v\n%s", i, err, n.agent.Output())
			}
			s, err := l.Accept()
			must(t, err, s.(*net.TCPConn).CloseWrite())
			b, err := io.ReadAll(c)
			if err != nil || len(b) > 0 {
				t.Fatalf("connection %d: %q, %v", i, b, err)
			}
			must(t, c.Close())
			b, err = io.ReadAll(s)
			if err != nil || len(b) > 0 {
				t.Fatalf("connection %d, at the server: %q, %v", i, b, err)
			}
			s.Close()
		}
	})
}
