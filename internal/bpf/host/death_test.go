package host

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// serverEnv makes the test binary play a server that ends as its client asks.
const serverEnv = "SCAFFOLD_EDGE_SERVER"

// answerLen is more than a send buffer holds when the client does not read.
const answerLen = 300_000

// markDying is MARK_DYING of dying.h.
const markDying = 0x5cafdead

// playServer answers "LENGTH HOW\n" with that many bytes and then ends that way.
func playServer() {
	l, err := net.Listen("tcp6", os.Getenv(serverEnv))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		var how string
		var length int
		fmt.Fscanf(c, "%d %q\n", &length, &how)
		c.(*net.TCPConn).SetWriteBuffer(2 * answerLen)
		c.Write(make([]byte, length))
		endBy(how, c)
	}
}

func endBy(how string, c net.Conn) {
	switch how {
	case "close":
		c.Close()
	case "shutdown":
		c.(*net.TCPConn).CloseWrite()
	case "shutdown, kill":
		c.(*net.TCPConn).CloseWrite()
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "exit0":
		os.Exit(0)
	case "exit3":
		os.Exit(3)
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "crash":
		// As a program without Go ends by it. Go's own handler stays whatever os/signal says, and may never end: it waits for
		// the lock of what is printed, which the thread has that it interrupts (seen once: "all goroutines are asleep").
		var byDefault [8]uint64 // struct sigaction: SIG_DFL, no flags, no mask
		if _, _, err := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGSEGV), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0); err != 0 {
			fmt.Println(err)
		}
		syscall.Kill(os.Getpid(), syscall.SIGSEGV)
	}
	fmt.Println("answered")
}

// A truncated answer must not look complete: after the death of its server the client reads all that was sent,
// then an error; after an ordinary end it reads the end.
func TestATruncatedAnswerIsAnError(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, webTCP, server)
	hooks, err := sockets.Open(nstest.BPFFS)
	must(t, err)
	t.Cleanup(func() { hooks.Close() })
	var watched *sockets.Host
	server.Do(func() { watched, err = hooks.Join(space.Services) })
	must(t, err)
	t.Cleanup(func() { watched.Close(false) })
	for _, c := range []struct {
		how  string
		want error
	}{{"close", nil}, {"shutdown", nil}, {"shutdown, kill", nil}, {"exit0", nil}, {"exit3", syscall.ECONNRESET}, {"kill", syscall.ECONNRESET}, {"crash", syscall.ECONNRESET}} {
		for _, length := range []int{0, 5, answerLen} {
			t.Run(fmt.Sprintf("%s/%d", c.how, length), func(t *testing.T) {
				got, err := askOne(t, client, server, c.how, length)
				if got != int64(length) || !errors.Is(err, c.want) {
					t.Errorf("the client read %d of %d bytes, then %v; want %v", got, length, err, c.want)
				}
			})
		}
	}
}

// askOne starts a server for one request and reads its answer only after the server's end.
func askOne(t *testing.T, client, server *testHost, how string, length int) (int64, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), serverEnv+"="+at(webAddr, 80))
	p := server.StartCmd(t, cmd)
	p.WaitFor(t, "listening")
	conn, err := client.dial(at(webAddr, 80))
	must(t, err)
	defer conn.Close()
	within(t, conn)
	fmt.Fprintf(conn, "%d %q\n", length, how)
	if how == "close" || how == "shutdown" {
		p.WaitFor(t, "answered")
	} else {
		p.WaitEnd(t)
	}
	return io.Copy(io.Discard, conn)
}
