package sockets

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A program is the test binary playing a program with sockets: it does what it is told on stdin, one
// system call a line, and says "ok" or the error. It has no thread tricks: close() is its own.
type program struct {
	*nstest.Proc
	in *os.File
	n  int
}

// start runs a program in the namespace, in the cgroup if dir is not empty.
func start(t *testing.T, ns *nstest.NS, dir string) *program {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Cleanup(func() { w.Close() })
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), scriptEnv+"=1")
	cmd.Stdin = r
	if dir != "" {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	}
	p := &program{Proc: ns.StartCmd(t, cmd), in: w}
	return p
}

// do performs one call and returns what it printed.
func (p *program) do(t *testing.T, format string, args ...any) string {
	t.Helper()
	p.n++
	fmt.Fprintf(p.in, format+"\n", args...)
	p.WaitFor(t, fmt.Sprintf("[%d]", p.n))
	out := p.Output()
	_, out, _ = strings.Cut(out, fmt.Sprintf("[%d]", p.n))
	for !strings.Contains(out, "\n") {
		p.WaitFor(t, "\n")
		_, out, _ = strings.Cut(p.Output(), fmt.Sprintf("[%d]", p.n))
	}
	line, _, _ := strings.Cut(out, "\n")
	return strings.TrimSpace(line)
}

// must is do for a call that must succeed.
func (p *program) must(t *testing.T, format string, args ...any) {
	t.Helper()
	if out := p.do(t, format, args...); out != "ok" {
		t.Fatalf("%s: %s", fmt.Sprintf(format, args...), out)
	}
}

func playScript() {
	files := map[string]int{}
	in := bufio.NewScanner(os.Stdin)
	for n := 1; in.Scan(); n++ {
		out, err := play(files, strings.Fields(in.Text()))
		if err != nil {
			out = err.Error()
		}
		fmt.Printf("[%d]%s\n", n, out)
	}
}

// play runs "VERB socket ARGUMENT".
func play(files map[string]int, w []string) (string, error) {
	verb, name := w[0], w[1]
	fd := files[name]
	switch verb {
	case "tcp", "udp":
		kind := map[string]int{"tcp": unix.SOCK_STREAM, "udp": unix.SOCK_DGRAM}[verb]
		fd, err := unix.Socket(unix.AF_INET6, kind|unix.SOCK_CLOEXEC, 0)
		files[name] = fd
		return "ok", err
	case "udp4", "tcp4":
		kind := map[string]int{"tcp4": unix.SOCK_STREAM, "udp4": unix.SOCK_DGRAM}[verb]
		fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		files[name] = fd
		return "ok", err
	case "reuse":
		return "ok", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	case "v6only":
		return "ok", unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	case "bind":
		return "ok", unix.Bind(fd, sockaddr(w[2]))
	case "connect":
		return "ok", unix.Connect(fd, sockaddr(w[2]))
	case "listen":
		return "ok", unix.Listen(fd, 4)
	case "shutdown":
		return "ok", unix.Shutdown(fd, unix.SHUT_RDWR)
	case "close":
		return "ok", unix.Close(fd)
	case "name":
		return nameOf(fd)
	case "dup": // "dup new old": as a fork shares it
		fd, err := unix.Dup(files[w[2]])
		files[name] = fd
		return "ok", err
	}
	return "", fmt.Errorf("no verb %q", verb)
}

func sockaddr(s string) unix.Sockaddr {
	a := netip.MustParseAddrPort(s)
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

func nameOf(fd int) (string, error) {
	sa, err := unix.Getsockname(fd)
	switch sa := sa.(type) {
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)).String(), nil
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)).String(), nil
	}
	return "", err
}
