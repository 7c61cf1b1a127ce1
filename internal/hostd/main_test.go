package hostd

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/nstest"
	"scaffold.dev/scaffold/internal/obs"
)

// The test binary plays two parts more: the daemon, so that it can be killed, and a program with a
// listener.
const (
	daemonEnv = "SCAFFOLD_HOSTD_CONFIG"
	listenEnv = "SCAFFOLD_HOSTD_LISTEN"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(daemonEnv) != "":
		playDaemon()
	case os.Getenv(listenEnv) != "":
		playListener(os.Getenv(listenEnv))
	default:
		nstest.Main(m)
	}
}

func playDaemon() {
	var cfg Config
	if err := json.Unmarshal([]byte(os.Getenv(daemonEnv)), &cfg); err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log, _ := obs.NewLogger(os.Stderr, "text", "debug")
	if err := Run(ctx, cfg, log); err != nil {
		fmt.Fprintln(os.Stderr, "hostd:", err)
		os.Exit(1)
	}
}

// playListener accepts and answers "ok" until it is killed.
func playListener(addr string) {
	l, err := net.Listen("tcp6", addr)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprint(c, "HTTP/1.0 200 OK\r\n\r\nok")
		c.Close()
	}
}
