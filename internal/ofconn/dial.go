package ofconn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
)

// Dial connects to a switch that waits for controllers, at tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE,
// as Open vSwitch writes them. Secure is for ssl alone. To who comes by that way Open vSwitch sends
// nothing unasked before it has seen an ofp.SetConfig with a MissLen.
func Dial(ctx context.Context, target string, secure *tls.Config, cfg Config) (*Conn, error) {
	network, address, err := split(target, secure)
	if err != nil {
		return nil, err
	}
	var nc net.Conn
	if network == "ssl" {
		nc, err = (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", address)
	} else {
		nc, err = (&net.Dialer{}).DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, fmt.Errorf("switch at %s: %w", target, err)
	}
	c, err := New(ctx, nc, cfg)
	if err != nil {
		return nil, fmt.Errorf("switch at %s: %w", target, err)
	}
	return c, nil
}

// Listen waits for switches at a target as Dial has it; with ssl they must show what secure asks for.
func Listen(ctx context.Context, target string, secure *tls.Config) (net.Listener, error) {
	network, address, err := split(target, secure)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	if network != "ssl" {
		return lc.Listen(ctx, network, address)
	}
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, secure), nil
}

// CheckTarget says what is wrong with how a target is written.
func CheckTarget(target string, secure *tls.Config) error {
	network, address, err := split(target, secure)
	if err != nil || network == "unix" {
		return err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return fmt.Errorf("switch at %q: want %s:HOST:PORT, an IPv6 address in brackets", target, network)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("switch at %q: port %q: want a number up to 65535", target, port)
	}
	return nil
}

func split(target string, secure *tls.Config) (network, address string, err error) {
	network, address, ok := strings.Cut(target, ":")
	switch {
	case !ok || network != "tcp" && network != "ssl" && network != "unix":
		return "", "", fmt.Errorf("switch at %q: want tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE", target)
	case network == "ssl" && secure == nil:
		return "", "", fmt.Errorf("switch at %q: ssl needs a key and certificates", target)
	}
	return network, address, nil
}
