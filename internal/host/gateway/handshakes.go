package gateway

import (
	"net"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/sid"
)

const (
	// handshakeEvery is how often the kernel is asked for handshakes under way.
	handshakeEvery = 10 * time.Millisecond
	// handshakeLimit is what those get to come to their end: the SYN-ACK is sent again after a second. A client that has
	// said nothing until then is none, as most of a flood.
	handshakeLimit = 3 * time.Second
)

// settle waits until no handshake with a listener is under way, of which none begins any more, and reports whether that is
// so. However late a client's ACK is, to the client the connection is there: it would be reset.
func settle(at net.Addr) (settled bool, err error) {
	a, ok := at.(*net.TCPAddr)
	if !ok {
		return true, nil // a Unix socket has none
	}
	d, err := sockets.OpenDiag()
	if err != nil {
		return false, err
	}
	defer d.Close()
	for end := time.Now().Add(handshakeLimit); ; time.Sleep(handshakeEvery) {
		n, err := handshakes(d, a.AddrPort())
		if n == 0 || err != nil || !time.Now().Before(end) {
			return n == 0 && err == nil, err
		}
	}
}

// handshakes counts those of which a listener has sent the SYN-ACK, and not got the answer.
func handshakes(d *sockets.Diag, listener netip.AddrPort) (n int, err error) {
	addr := listener.Addr().Unmap()
	each := d.Each
	if addr.Is4() {
		each = d.EachIPv4
	}
	err = each(sid.TCP, sockets.StateSYNReceived, listener.Port(), func(s sockets.DiagSocket) {
		if addr.IsUnspecified() || s.Local.Addr().Unmap() == addr.WithZone("") {
			n++
		}
	})
	return n, err
}
