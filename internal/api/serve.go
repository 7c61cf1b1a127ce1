package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// drainTime is what calls in progress get when the server stops. Streams never end by themselves.
const drainTime = 200 * time.Millisecond

// socketMode lets root and the socket's group speak to the daemon: whoever can, rules the network.
const socketMode = 0o660

// Listen opens the endpoint. A Unix socket that a dead daemon left is replaced; one that still
// answers is an error.
func Listen(endpoint string) (net.Listener, error) {
	e, err := ParseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if e.Network == "unix" {
		return listenUnix(e.Address)
	}
	l, err := net.Listen(e.Network, e.Address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %v: the port is taken: is another daemon running, or choose another port: %w", e, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %v: %w", e, err)
	}
	return l, nil
}

func listenUnix(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("listen on unix:%s: %w", path, err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on unix:%s: %w", path, err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen on unix:%s: %w", path, err)
	}
	return l, nil
}

// removeStale asks the socket whether anybody is there before it takes the name away.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listen on unix:%s: %w", path, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("listen on unix:%s: something that is no socket has that name: move it away or choose another path", path)
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return running(fmt.Sprintf("listen on unix:%s: another daemon answers there: stop it or choose another path", path))
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("listen on unix:%s: remove the socket that a dead daemon left: %w", path, err)
	}
	return nil
}

// Serve answers on all listeners until ctx ends or one of them fails, and closes them. Handlers see
// a context that ends with ctx, so that streams let go.
func Serve(ctx context.Context, handler http.Handler, listeners ...net.Listener) error {
	server := newServer(ctx, handler)
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- server.Serve(l) }() // ends with server.Close below
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fmt.Errorf("serve the API: %w", err)
	}
	stop, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	_ = server.Shutdown(stop) // gives up on streams after drainTime; Close ends them
	_ = server.Close()
	return err
}

func newServer(ctx context.Context, handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug), // handshakes that failed: the other end says why
		Protocols:         protocols,
		HTTP2:             pings(),
		ReadHeaderTimeout: dialTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withCaller,
	}
}
