package gateway

import (
	"net"

	"github.com/pires/go-proxyproto"
)

// proxyHeader says to a server who its client is, in the PROXY protocol: where the client comes from, and
// which of our addresses it came to. Of a Unix socket there is nothing to say, which the protocol calls
// UNKNOWN or LOCAL.
func proxyHeader(version int, client, us net.Addr) ([]byte, error) {
	h := proxyproto.HeaderProxyFromAddrs(byte(version), client, us)
	if _, ok := client.(*net.UnixAddr); ok {
		h = &proxyproto.Header{Version: byte(version), Command: proxyproto.LOCAL, TransportProtocol: proxyproto.UNSPEC}
	}
	return h.Format()
}
