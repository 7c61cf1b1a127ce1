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

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/tests/nstest"
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

// playListener accepts and answers "ok" until it is killed, perhaps beside others on the same address.
func playListener(addr string) {
	beside := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return err
	}}
	l, err := beside.Listen(context.Background(), "tcp6", addr)
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
