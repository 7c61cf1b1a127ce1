package wg

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/linux/private"
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
	go func() { failed <- server.Serve(private.Listener(l)) }()
	select {
	case err = <-failed:
	case <-ended:
	}
	k.close() // before the connection closes that ended it: who waits for that finds nothing any more
	if path := l.Addr().String(); !strings.HasPrefix(path, "@") {
		os.Remove(path)
	}
	server.Close()
	return err
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
