package nstest

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// An NS is a network namespace without a name, gone with the test. Its loopback is up and duplicate
// address detection is off.
type NS struct {
	Name string // in messages
	file *os.File
	link *netlink.Handle
}

// New makes a namespace for the rest of the test.
func New(t testing.TB, name string) *NS {
	t.Helper()
	Root(t)
	file, err := nsenter.New(nil)
	if err != nil {
		t.Fatalf("namespace %s: %v", name, err)
	}
	n := within(t, name, file)
	for _, dev := range []string{"all", "default"} {
		n.Sysctl(t, "net/ipv6/conf/"+dev+"/accept_dad", "0")
		n.Sysctl(t, "net/ipv6/conf/"+dev+"/accept_ra", "0")
		n.Sysctl(t, "net/ipv6/conf/"+dev+"/router_solicitations", "0")
	}
	n.Up(t, "lo")
	return n
}

// Enter opens a namespace that has a name in the file system, as those of labs have, for the rest of
// the test. Nothing in it is changed.
func Enter(t testing.TB, name, path string) *NS {
	t.Helper()
	Root(t)
	file, err := os.Open(path)
	if err != nil {
		t.Fatalf("namespace %s: %v", name, err)
	}
	return within(t, name, file)
}

func within(t testing.TB, name string, file *os.File) *NS {
	t.Helper()
	t.Cleanup(func() { file.Close() })
	var link *netlink.Handle
	err := nsenter.Do(file, func() (err error) { link, err = netlink.NewHandle(); return err })
	if err != nil {
		t.Fatalf("namespace %s: netlink: %v", name, err)
	}
	t.Cleanup(link.Close)
	return &NS{Name: name, file: file, link: link}
}

// Fd is the open namespace, for setns; it is valid until the test ends.
func (n *NS) Fd() int { return int(n.file.Fd()) }

// Link is a netlink handle inside the namespace.
func (n *NS) Link() *netlink.Handle { return n.link }

// Inode is the number that names the namespace in pin paths.
func (n *NS) Inode(t testing.TB) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(n.Fd(), &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// Do runs f in the namespace, on the calling goroutine, locked to its thread.
func (n *NS) Do(f func()) {
	if err := nsenter.Visit(n.file, func() error { f(); return nil }); err != nil {
		panic(fmt.Sprintf("namespace %s: %v", n.Name, err))
	}
}

// Sysctl writes value to /proc/sys/PATH as seen in the namespace.
func (n *NS) Sysctl(t testing.TB, path, value string) {
	t.Helper()
	n.Do(func() {
		if err := os.WriteFile("/proc/sys/"+path, []byte(value), 0); err != nil {
			t.Fatalf("%s: sysctl %s=%s: %v", n.Name, path, value, err)
		}
	})
}

// Dial connects from inside the namespace; addr is literal, as resolving would leave the thread.
func (n *NS) Dial(network, addr string) (c net.Conn, err error) {
	n.Do(func() { c, err = net.Dial(network, addr) })
	return c, err
}

// Listen listens inside the namespace until the test ends.
func (n *NS) Listen(t testing.TB, network, addr string) (l net.Listener) {
	t.Helper()
	n.Do(func() {
		var err error
		if l, err = net.Listen(network, addr); err != nil {
			t.Fatalf("%s: %v", n.Name, err)
		}
	})
	t.Cleanup(func() { l.Close() })
	return l
}

// ListenPacket opens a UDP socket inside the namespace until the test ends.
func (n *NS) ListenPacket(t testing.TB, network, addr string) (c net.PacketConn) {
	t.Helper()
	n.Do(func() {
		var err error
		if c, err = net.ListenPacket(network, addr); err != nil {
			t.Fatalf("%s: %v", n.Name, err)
		}
	})
	t.Cleanup(func() { c.Close() })
	return c
}
