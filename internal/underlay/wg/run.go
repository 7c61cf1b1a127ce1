package wg

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/underlay"
)

// Run serves the daemon that started this process, and those after it, until one of them ends it.
func Run() error {
	l, err := net.FileListener(os.NewFile(underlay.ListenerFD, "listener"))
	if err != nil {
		return fmt.Errorf("not started by a daemon: %w", err)
	}
	// A terminal or a service manager that ends the daemon lets it leave the network first, through the tunnel.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	k, err := newKeeper(os.NewFile(underlay.DaemonFD, "of the daemon"))
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	server := &http.Server{Handler: handler(k, ended), ReadHeaderTimeout: time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(&ownListener{l}) }()
	select {
	case err = <-failed:
	case <-ended:
	}
	k.close() // before the connection closes that ended it: who waits for that finds nothing any more
	server.Close()
	return err
}

// ownListener takes connections of this process's user alone: names in the abstract have no permissions.
type ownListener struct{ net.Listener }

func (l *ownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUser(c); err == nil && uid == uint32(os.Geteuid()) {
			return c, nil
		}
		c.Close()
	}
}

func peerUser(c net.Conn) (uid uint32, err error) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

func handler(k *keeper, ended chan struct{}) http.Handler {
	var mu sync.Mutex // of the keeper
	var once sync.Once
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var err error
		switch r.Method {
		case http.MethodGet:
			var s underlay.State
			if s, err = k.state(); err == nil {
				err = json.NewEncoder(w).Encode(s)
			}
		case http.MethodPut:
			var s underlay.Setup
			if err = json.NewDecoder(r.Body).Decode(&s); err == nil {
				err = k.set(s)
			}
		case http.MethodDelete:
			once.Do(func() { close(ended) })
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
}
