package sweep

import (
	"net"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/sid"
)

func TestAConnectionIsHeldByItsSockets(t *testing.T) {
	diag, err := sockets.OpenDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer diag.Close()
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp6", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	held, err := (&Sweeper{diag: diag}).connections()
	if err != nil {
		t.Fatal(err)
	}
	of := func(c net.Conn) host.Tuple {
		return host.Tuple{Local: c.LocalAddr().(*net.TCPAddr).AddrPort(), Remote: c.RemoteAddr().(*net.TCPAddr).AddrPort(), Proto: sid.TCP}
	}
	for what, c := range map[string]net.Conn{"client": c, "server": server} {
		if !held(of(c)) {
			t.Errorf("the %s's connection %v has no socket", what, of(c))
		}
	}
	other := of(c)
	other.Remote = other.Local
	if held(other) {
		t.Errorf("%v has a socket", other)
	}
	if other.Guest = 7; !held(other) {
		t.Error("nobody knows the sockets of guest 7, so none of its connections is without one")
	}
}
