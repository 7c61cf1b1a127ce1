package gateway

import (
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold"
)

// The socket is not there: which one, and whose, is what helps.
func TestAHostDaemonThatIsAwayIsNamed(t *testing.T) {
	host := scaffold.Host{Daemon: "unix:/nonexistent/hostd.sock"}
	_, err := host.Lookup(t.Context(), "web")
	const want = "no host daemon answers at unix:/nonexistent/hostd.sock: is hostd running there? Start it, or name its socket by --daemon"
	if err == nil || cause(err) != want {
		t.Errorf("%v: want %q", err, want)
	}
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", unix.ECONNREFUSED)}
	if said := cause(refused); !strings.HasPrefix(said, "connection refused") {
		t.Errorf("of a server: %q", said)
	}
}
