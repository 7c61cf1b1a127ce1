package api

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// An Endpoint says where an API is, in package net's terms.
type Endpoint struct {
	Network string      // "unix" or "tcp"
	Address string      // a path, or host:port
	Secure  bool        // written https://: nothing is said in the clear
	TLS     *tls.Config // who we are and whom we take, where it is spoken by TLS; Unix sockets never are
}

// As is the endpoint by TLS, in the name of the one whose configuration it is; nil: in the clear.
func (e Endpoint) As(who *tls.Config) Endpoint {
	if e.Network == "tcp" {
		e.TLS = who
	}
	return e
}

// maxUnixPath is what fits into sockaddr_un with its final zero.
const maxUnixPath = 107

// ControllerPort is where a controller listens, and is looked for, where nobody says another port.
const ControllerPort = "23728"

// withPort adds the default port to a host that has none: to an address, and to a name where it is said that it is one.
// A word alone is rather a mistake.
func withPort(host string, named bool) string {
	bare := host
	if inside, ok := strings.CutPrefix(host, "["); ok {
		if bare, ok = strings.CutSuffix(inside, "]"); !ok {
			return host
		}
	}
	if _, err := netip.ParseAddr(bare); err == nil && !strings.Contains(bare, "]") || named && host != "" && !strings.ContainsAny(host, ":/@[]") {
		return net.JoinHostPort(bare, ControllerPort)
	}
	return host
}

// WithPort adds the default port to the address or name of a controller that has none.
func WithPort(host string) string { return withPort(host, true) }

// ParseEndpoint reads unix:/path, http://host:port, https://host:port, or plain host:port; a host without a port, written
// as a URL or as an address, is asked at ControllerPort. A zone may be written with
// a plain % although URLs want %25: people copy link-local addresses from ip(8).
func ParseEndpoint(s string) (Endpoint, error) { return parseEndpoint(s, withPort) }

// ParseEndpointAndPort is ParseEndpoint for what is not a controller's: the port has to be said.
func ParseEndpointAndPort(s string) (Endpoint, error) {
	return parseEndpoint(s, func(host string, _ bool) string { return host })
}

func parseEndpoint(s string, complete func(host string, named bool) string) (Endpoint, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		return unixEndpoint(strings.TrimPrefix(path, "//"))
	}
	hostport, secure := strings.CutPrefix(s, "https://")
	hostport = strings.TrimSuffix(strings.TrimPrefix(hostport, "http://"), "/")
	hostport = complete(hostport, strings.Contains(s, "://"))
	host, port, err := net.SplitHostPort(hostport)
	if err != nil || port == "" || strings.ContainsAny(host+port, "/@") {
		return Endpoint{}, fmt.Errorf("endpoint %q: want unix:/path/to/socket, http://host:port or https://host:port", s)
	}
	if err := CheckPort(port); err != nil {
		return Endpoint{}, fmt.Errorf("endpoint %q: %w", s, err)
	}
	if zone := strings.Index(host, "%25"); zone >= 0 {
		host = host[:zone] + "%" + host[zone+3:]
	}
	return Endpoint{Network: "tcp", Address: net.JoinHostPort(host, port), Secure: secure}, nil
}

// CheckPort says what is wrong with a port of TCP: there are 65535, some of which have names.
func CheckPort(port string) error {
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("port %q: want a number up to 65535", port)
	}
	return nil
}

func unixEndpoint(path string) (Endpoint, error) {
	switch {
	case path == "":
		return Endpoint{}, fmt.Errorf("endpoint \"unix:\": the path of the socket is missing")
	case len(path) > maxUnixPath:
		return Endpoint{}, fmt.Errorf("endpoint unix:%s: %d characters, the kernel takes %d: choose a shorter path", path, len(path), maxUnixPath)
	}
	return Endpoint{Network: "unix", Address: path}, nil
}

func (e Endpoint) String() string {
	if e.Network == "unix" {
		return "unix:" + e.Address
	}
	if e.Secure || e.TLS != nil {
		return "https://" + e.Address
	}
	return "http://" + e.Address
}
