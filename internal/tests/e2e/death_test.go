package e2e

import (
	"errors"
	"io"
	"syscall"
	"testing"
	"time"
)

// half is a server that reads a request, announces an answer, sends half of it, waits to be killed.
const half = `
import socket, sys, time
l = socket.create_server((sys.argv[1], 80), family=socket.AF_INET6)
print("listening", flush=True)
while True:
    c, _ = l.accept()
    c.recv(4096)
    c.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 5000)
    print("half", flush=True)
`

// Without Scaffold the kernel ends the connections of a killed process by FIN, and an answer without a
// length looks complete.
func TestAKilledServerIsAnErrorNotAnEnd(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("death")
	p := n.start("s1", "python3", "-c", half, addr.String())
	n.serving("death", "tcp", 80, 1)
	c := n.dial("c1", "tcp6", port(addr, 80))
	c.SetDeadline(time.Now().Add(answerTime))
	if _, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	p.WaitFor(t, "half")
	p.Signal(syscall.SIGKILL)
	answer, err := io.ReadAll(c)
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server was killed in the middle of its answer; the client read %d bytes and then %v, want ECONNRESET: it must not take a truncated answer for a complete one (the edge turns the FIN of a process that died into RST)\nlook at: %s", len(answer), err, n.look())
	}
}
