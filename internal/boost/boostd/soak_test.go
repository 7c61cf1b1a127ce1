package boostd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/bpffs"
	"scaffold.dev/scaffold/internal/bpf/stats"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// doorPort is that of other agents, by default.
const doorPort = "23731"

// frays has the link between the agents lose one packet in a hundred, and end a connection with one in 1,000: who has sent that hears of
// a reset, and the other end with what it says next. Packets are those that the kernel makes of several (GRO).
func (n *network) frays() {
	n.t.Helper()
	for _, r := range []*nstest.NS{n.x, n.y} {
		rules := "add table inet frays; add chain inet frays in { type filter hook input priority 0; }; "
		for _, end := range []string{"sport", "dport"} {
			rules += "add rule inet frays in iifname p1 tcp " + end + " " + doorPort + " numgen random mod 1000 == 0 counter reject with tcp reset; "
		}
		r.Run(n.t, "nft", rules+"add rule inet frays in iifname p1 meta l4proto tcp numgen random mod 100 == 0 counter drop")
	}
}

// frayed is how many packets were lost, and how many ended a connection.
func (n *network) frayed() (lost, cut int) {
	n.t.Helper()
	for _, r := range []*nstest.NS{n.x, n.y} {
		for line := range strings.Lines(r.Run(n.t, "nft", "list", "table", "inet", "frays")) {
			_, counts, is := strings.Cut(line, "counter packets ")
			var packets int
			if _, err := fmt.Sscan(counts, &packets); !is || err != nil {
				continue
			}
			if strings.Contains(line, "reject") {
				cut += packets
			} else {
				lost += packets
			}
		}
	}
	return lost, cut
}

// A long way is one direction of a connection that carries more than memory holds; its bytes follow from the seed.
type longWay struct {
	seed    byte
	bytes   int64
	in, out *net.TCPConn
}

// send sends all, and the end. Each write has a deadline of its own: nobody stands still.
func (w *longWay) send() error {
	source, b := rand.NewChaCha8([32]byte{w.seed}), make([]byte, 256<<10)
	for left := w.bytes; left > 0; {
		part := b[:min(left, int64(len(b)))]
		source.Read(part) // never fails
		w.in.SetWriteDeadline(time.Now().Add(nstest.Deadline))
		if _, err := w.in.Write(part); err != nil {
			return fmt.Errorf("send, with %d bytes left: %w", left, err)
		}
		left -= int64(len(part))
	}
	return w.in.CloseWrite()
}

// receive compares all that comes, and calls each after so many bytes.
func (w *longWay) receive(every int64, each func()) error {
	source := rand.NewChaCha8([32]byte{w.seed})
	b, want := make([]byte, 256<<10), make([]byte, 256<<10)
	for got, next := int64(0), every; ; {
		w.out.SetReadDeadline(time.Now().Add(nstest.Deadline))
		n, err := w.out.Read(b)
		source.Read(want[:n])
		if !bytes.Equal(b[:n], want[:n]) {
			return fmt.Errorf("of the %d bytes behind the first %d some are others", n, got)
		}
		got += int64(n)
		for ; got >= next; next += every {
			each()
		}
		switch {
		case errors.Is(err, io.EOF) && got == w.bytes:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the end came behind %d of %d bytes", got, w.bytes)
		case err != nil:
			return fmt.Errorf("receive, behind %d of %d bytes: %w", got, w.bytes, err)
		}
	}
}

// Much goes both ways while workers are killed about once in a second, connections of the agents are cut and the path loses one packet
// in a hundred: each byte arrives, once, in its place, and behind the last one the end.
func TestMuchIsWholeOverAPathThatFrays(t *testing.T) {
	safety.Test(t, safety.Bytes)
	size := int64(1 << 30)
	if nstest.Long() {
		size = 10 << 30
	}
	n := newNetwork(t)
	n.both()
	n.frays()
	client, server := n.connect(families[0], "13")
	ways := []*longWay{{1, size, client, server}, {2, size, server, client}}
	marks, ended := make(chan struct{}, 1), make(chan error)
	for _, w := range ways {
		go func() { ended <- w.send() }()
		go func() {
			ended <- w.receive(64<<20, func() {
				select {
				case marks <- struct{}{}:
				default: // a worker is being killed
				}
			})
		}()
	}
	kills := 0
	for left := 2 * len(ways); left > 0; {
		select {
		case err := <-ended:
			if left--; err != nil {
				t.Error(err)
				client.Close() // and all of it ends
				server.Close()
			}
		case <-marks:
			n.kill([]string{"x", "y"}[rand.IntN(2)], syscall.SIGKILL)
			kills++
		}
	}
	lost, cut := n.frayed()
	t.Logf("%d MB each way; %d workers killed, %d packets lost, %d connections of the agents cut", size>>20, kills, lost, cut)
	if t.Failed() {
		t.Logf("x: %s\ny: %s", n.agents["x"].Output(), n.agents["y"].Output())
	}
	// Of a gigabyte each way some 74,000 packets were counted: that one in 1,000 of them cuts nothing has a chance of e^-74.
	if kills == 0 || lost == 0 || cut == 0 {
		t.Error("nothing of that has happened: does the test still do it?")
	}
}

// held are what an agent's machine has of connections that have ended: sockets, but for those of other agents, and entries of its
// programs' table. late: with those that wait for late segments, for a minute.
func (n *network) held(at *nstest.NS, late bool) (text string) {
	n.t.Helper()
	for line := range strings.Lines(at.Run(n.t, "ss", "-Htan", "sport", "!=", doorPort, "and", "dport", "!=", doorPort)) {
		if !strings.HasPrefix(line, "LISTEN") && (late || !strings.HasPrefix(line, "TIME-WAIT")) {
			text += line
		}
	}
	if !late {
		return text
	}
	entries, err := stats.Entries(filepath.Join(n.pins(at), "sessions"))
	if err != nil {
		n.t.Fatal(err)
	}
	if entries > 0 {
		text += fmt.Sprintf("%d entries\n", entries)
	}
	return text
}

// pins is where the agent at a machine has its programs' tables: its worker has the directory open.
func (n *network) pins(at *nstest.NS) string {
	n.t.Helper()
	name := map[*nstest.NS]string{n.x: "x", n.y: "y"}[at]
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", n.worker(name)))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, l := range links {
		if path, err := os.Readlink(l); err == nil && strings.HasPrefix(path, bpffs.Default+"/") {
			return path
		}
	}
	n.t.Fatalf("agent %s has no pins: %s", name, n.agents[name].Output())
	return ""
}

// forgets waits until both agents' machines have nothing of connections that have ended.
func (n *network) forgets() {
	n.t.Helper()
	end := time.Now().Add(nstest.Deadline)
	if nstest.Long() {
		end = end.Add(time.Minute) // so long a socket waits for late segments (TCP_TIMEWAIT_LEN)
	}
	for _, at := range []*nstest.NS{n.x, n.y} {
		for {
			has := n.held(at, nstest.Long())
			if has == "" {
				break
			}
			if time.Now().After(end) {
				n.t.Fatalf("%v has still\n%s\nx: %s\ny: %s", at, has, n.agents["x"].Output(), n.agents["y"].Output())
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// lookAtSYNs tells of the client's connections that do not come about, and of what each machine has of them.
func (n *network) lookAtSYNs() {
	begun, _ := n.client.Try("ss", "-Htan", "state", "syn-sent")
	for line := range strings.Lines(begun) {
		fields := strings.Fields(line) // queues, local, peer
		if len(fields) < 4 {
			continue
		}
		text := "the client: " + line
		port := fields[2][strings.LastIndex(fields[2], ":")+1:]
		for name, at := range map[string]*nstest.NS{"x": n.x, "y": n.y, "the server": n.server} {
			has, _ := at.Try("ss", "-Htano", "sport", "=", port, "or", "dport", "=", port)
			text += name + ": " + strings.TrimSpace(has) + "\n"
		}
		n.t.Logf("a connection does not come about for %v\n%s", nstest.Deadline/2, text)
	}
}
