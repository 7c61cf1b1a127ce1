package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/examples/resume/record"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func blob(t *testing.T, size int) ([]byte, string) {
	t.Helper()
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{2}).Read(b)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "blob"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return b, dir
}

// instance is a server on a port of its own; it ends with the test.
func instance(t *testing.T, root, sessions string) *server {
	t.Helper()
	conn, err := net.ListenPacket("udp", "[::1]:0")
	must(t, err)
	files, err := os.OpenRoot(root)
	must(t, err)
	shared, err := record.Open(sessions, time.Hour)
	must(t, err)
	s := newServer(conn, files, shared)
	s.log = t.Logf
	return s
}

func (s *server) start(t *testing.T) {
	done := make(chan error, 1)
	go func() { done <- s.run(nil) }()
	t.Cleanup(func() {
		s.conn.Close()
		must(t, <-done)
		s.root.Close()
	})
}

func (s *server) addr() *net.UDPAddr { return s.conn.LocalAddr().(*net.UDPAddr) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clients are those of Debian, each fetching "blob" from a port of the loopback into a file.
func clients(port int, to string) map[string][]string {
	url := fmt.Sprintf("tftp://[::1]:%d/blob", port)
	return map[string][]string{
		"tftp-hpa":           {"tftp", "-6", "-m", "binary", "::1", strconv.Itoa(port), "-c", "get", "blob", to},
		"curl":               {"curl", "-gsS", "-o", to, url},
		"curl, large blocks": {"curl", "-gsS", "--tftp-blksize", "1428", "-o", to, url},
		"curl, RFC 1350":     {"curl", "-gsS", "--tftp-no-options", "-o", to, url},
	}
}

// fetch runs a client and compares what it got.
func fetch(t *testing.T, argv []string, to string, want []byte) {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	got, _ := os.ReadFile(to)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q: %v, %d bytes, want %d\n%s", argv, err, len(got), len(want), out)
	}
	os.Remove(to)
}

// forgotten waits until no transfer is recorded: a client ends before its last word is heard.
func forgotten(t *testing.T, s *server) {
	t.Helper()
	nstest.Wait(t, "the servers' lines above", func() error {
		if left, err := s.sessions.Keys(""); err != nil || len(left) != 0 {
			return fmt.Errorf("transfers that ended are still recorded: %q (%v)", left, err)
		}
		return nil
	})
}

func TestUnmodifiedClientsGetTheFile(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 100_000} {
		want, root := blob(t, size)
		s := instance(t, root, t.TempDir())
		s.start(t)
		to := filepath.Join(t.TempDir(), "got")
		for _, argv := range clients(s.addr().Port, to) {
			fetch(t, argv, to, want)
		}
		forgotten(t, s)
	}
}

func TestBlockNumbersMayWrap(t *testing.T) {
	want, root := blob(t, 512*70_000+5)
	s := instance(t, root, t.TempDir())
	s.start(t)
	to := filepath.Join(t.TempDir(), "got")
	fetch(t, clients(s.addr().Port, to)["tftp-hpa"], to, want)
}

func TestAFileThatIsNotThereIsRefused(t *testing.T) {
	_, root := blob(t, 1)
	s := instance(t, root, t.TempDir())
	s.start(t)
	for _, name := range []string{"nothing", "../tftpd_test.go", "."} {
		out, _ := exec.Command("tftp", "-6", "::1", strconv.Itoa(s.addr().Port), "-m", "binary", "-c", "get", name, "/dev/null").CombinedOutput()
		if !bytes.Contains(out, []byte("there is no such file")) {
			t.Errorf("%s: the client says %q", name, out)
		}
	}
}

// A steerer stands for the network: it brings a client's datagrams to one instance until that sheds them.
type steerer struct {
	front, back net.PacketConn
	mu          sync.Mutex
	to          []*net.UDPAddr // the first is in use
	client      net.Addr
}

func steer(t *testing.T, to ...*net.UDPAddr) *steerer {
	t.Helper()
	s := &steerer{to: to}
	var err error
	s.front, err = net.ListenPacket("udp", "[::1]:0")
	must(t, err)
	s.back, err = net.ListenPacket("udp", "[::1]:0")
	must(t, err)
	go s.copy(s.front, func(from net.Addr) (net.PacketConn, net.Addr) { s.client = from; return s.back, s.to[0] }) // end
	go s.copy(s.back, func(net.Addr) (net.PacketConn, net.Addr) { return s.front, s.client })                      // with the sockets
	t.Cleanup(func() { s.front.Close(); s.back.Close() })
	return s
}

func (s *steerer) copy(in net.PacketConn, route func(net.Addr) (net.PacketConn, net.Addr)) {
	b := make([]byte, 65536)
	for {
		n, from, err := in.ReadFrom(b)
		if err != nil {
			return
		}
		s.mu.Lock()
		out, to := route(from)
		s.mu.Unlock()
		out.WriteTo(b[:n], to)
	}
}

// next is what FAIL does: the client's datagrams go elsewhere, also those that were on their way.
func (s *steerer) next(net.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = s.to[1:]
	return nil
}

func TestATransferThatIsShedGoesOnElsewhere(t *testing.T) {
	want, root := blob(t, 200_000)
	for name := range clients(0, "") {
		sessions := t.TempDir()
		a, b := instance(t, root, sessions), instance(t, root, sessions)
		network := steer(t, a.addr(), b.addr())
		a.shedAfter, a.fail = 40, network.next
		a.start(t)
		b.start(t)
		to := filepath.Join(t.TempDir(), "got")
		fetch(t, clients(network.front.LocalAddr().(*net.UDPAddr).Port, to)[name], to, want)
		if len(network.to) != 1 {
			t.Errorf("%s: the transfer was not shed", name)
		}
		forgotten(t, a)
	}
}

func TestTransfersAreFoundByHostAndPortOrByPortAlone(t *testing.T) {
	_, root := blob(t, 1<<20)
	s := instance(t, root, t.TempDir())
	defer s.conn.Close()
	at := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	save := func(peer string, acked int64) {
		must(t, s.sessions.Put(key(at(peer)), place{Request: request{Name: "blob"}, Size: 1 << 20, Begun: true, Acked: acked}))
	}
	save("[fd5d:0:1:101:8000::1]:40000", 64)
	save("[fd5d:0:1:101:8000::2]:40001", 64)
	for _, c := range []struct {
		peer  string
		block uint16
		found bool
	}{
		{"[fd5d:0:1:101:9999::7]:40000", 70, true},   // another socketID
		{"[fd5d:0:1:202:9999::7]:40000", 70, true},   // another place
		{"[fd5d:0:1:202:9999::7]:40000", 9, false},   // before where it was
		{"[fd5d:0:1:202:9999::7]:40000", 900, false}, // far beyond
		{"[fd5d:0:1:202:9999::7]:40002", 70, false},
	} {
		if _, _, found := s.find(at(c.peer), c.block); found != c.found {
			t.Errorf("block %d of %s: found %v, want %v", c.block, c.peer, found, c.found)
		}
	}
	save("[fd5d:0:1:303::1]:40000", 64)
	if _, _, found := s.find(at("[fd5d:0:1:202:9999::7]:40000"), 70); found {
		t.Error("two transfers have the port, and one was taken")
	}
}

func TestAnAcknowledgementFindsItsBlockAcrossTheWrap(t *testing.T) {
	for _, c := range [][2]int64{{0, 0}, {65530, 65540}, {65540, 65530}, {131071, 131072}, {70_000, 70_064}} {
		tr := transfer{place: place{Acked: c[0]}}
		if got := tr.extend(uint16(c[1])); got != c[1] {
			t.Errorf("at %d the block %d is taken for %d", c[0], c[1], got)
		}
	}
}
