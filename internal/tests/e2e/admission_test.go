package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// locator is the locator of a host.
func (n *network) locator(host string) sid.Locator {
	n.t.Helper()
	r, err := n.admin.GetHost(n.t.Context(), connect.NewRequest(&apiv1.GetHostRequest{Name: host}))
	if err != nil {
		n.t.Fatalf("host %s: %v", host, err)
	}
	prefix, err := netip.ParsePrefix(r.Msg.Locator)
	if err != nil {
		n.t.Fatalf("host %s has a locator that cannot be read: %v", host, err)
	}
	return sid.LocatorOf(prefix.Addr())
}

// sshd starts a real one with its own configuration; it stays in the foreground and listens on all
// addresses. Argv goes before it.
func (n *network) sshd(host string, listen int, argv ...string) *nstest.Proc {
	n.t.Helper()
	dir := n.t.TempDir()
	key := filepath.Join(dir, "key")
	if out, err := n.run(host, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key); err != nil {
		n.t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	config := fmt.Sprintf("Port %d\nAddressFamily inet6\nHostKey %s\nPidFile none\nUsePAM no\nStrictModes no\n", listen, key)
	file := filepath.Join(dir, "sshd_config")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		n.t.Fatal(err)
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		n.t.Fatal(err)
	}
	p := n.start(host, append(argv, "/usr/sbin/sshd", "-D", "-e", "-f", file)...)
	p.WaitFor(n.t, "Server listening on ")
	return p
}

func TestWildcardListenersAreReachedByNoService(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("admission")
	n.sshd("s1", 22)
	n.serveTCP("s1", "[::]:2222")
	n.serveTCP("s1", port(addr, 80))
	n.serving("admission", "tcp", 80, 1)
	if err := only(n.connects("c1", netip.AddrPortFrom(addr, 80), 1), 0); err != nil {
		t.Fatalf("the port that is served: %v\nlook at: %s", err, n.look())
	}
	at := n.locator("s1")
	own := at.Host()
	id, _ := sid.DefaultSpace().ServiceOf(addr)
	for _, p := range []uint16{22, 2222} {
		if err := only(n.connects("c1", netip.AddrPortFrom(own, p), 1), 0); err != nil {
			t.Errorf("port %d of the host itself: %v", p, err)
		}
		if err := only(n.connects("c1", netip.AddrPortFrom(addr, p), 20), unix.ECONNREFUSED); err != nil {
			t.Errorf("port %d of the service: %v\nlook at: %s", p, err, n.look())
		}
		n.unreachable("c1", netip.AddrPortFrom(at.Addr(uint64(id.Suffix)), p))
	}
}

// unreachable connects to an address of s1 that no program may be reached by: an error comes back, or the
// edge there counts the packet as dropped.
func (n *network) unreachable(host string, to netip.AddrPort) {
	n.t.Helper()
	before := dropped(n.drops("s1"))
	var fd int
	n.at(host).Do(func() { fd = begin(n.t, to) })
	defer unix.Close(fd)
	nstest.Wait(n.t, n.look(), func() error {
		if ready, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 0); ready > 0 {
			if _, err := unix.Getpeername(fd); err == nil {
				n.t.Errorf("%s connects to %v, locator and suffix, and finds a socket that serves no service", host, to)
			}
			return nil
		}
		if now := n.drops("s1"); dropped(now) == before {
			return fmt.Errorf("%v: neither an answer nor a drop at s1, which counts %v", to, now)
		}
		return nil
	})
}

// dropped is the sum of all reasons for which an edge drops.
func dropped(counters map[string]uint64) (sum uint64) {
	for reason, count := range counters {
		if strings.HasPrefix(reason, "drop_") {
			sum += count
		}
	}
	return sum
}

func TestServicesOfOneHostAnswerOnTheirOwnPortsAlone(t *testing.T) {
	n := theNetwork(t)
	a, b := n.create("ports-a"), n.create("ports-b")
	n.serveTCP("s1", port(a, 80))
	n.serveTCP("s1", port(b, 443))
	n.serving("ports-a", "tcp", 80, 1)
	n.serving("ports-b", "tcp", 443, 1)
	for _, c := range []struct {
		addr netip.Addr
		port uint16
		want unix.Errno
	}{{a, 80, 0}, {b, 443, 0}, {a, 443, unix.ECONNREFUSED}, {b, 80, unix.ECONNREFUSED}} {
		if err := only(n.connects("c1", netip.AddrPortFrom(c.addr, c.port), 50), c.want); err != nil {
			t.Errorf("[%v]:%d: %v\nlook at: %s", c.addr, c.port, err, n.look())
		}
	}
}
