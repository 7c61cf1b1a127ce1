package boostd

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// twoLinks is a network whose agents have two links between them, of 300 and 200 Mbit/s, and an address of each at both ends.
func twoLinks(t *testing.T) *network {
	t.Helper()
	n := newNetwork(t)
	nstest.Veth(t, n.x, "p2", n.y, "p2")
	n.paths = map[string]string{"x": "fd08::1", "y": "fd08::2"}
	n.x.Addr(t, "p2", "fd08::1/64")
	n.y.Addr(t, "p2", "fd08::2/64")
	for _, r := range []*nstest.NS{n.x, n.y} {
		for port, rate := range map[string]string{"p1": "300mbit", "p2": "200mbit"} {
			r.Run(t, "tc", "qdisc", "add", "dev", port, "root", "tbf", "rate", rate, "burst", "256kb", "latency", "30ms")
		}
	}
	n.both()
	n.hasPaths(2)
	return n
}

// pathLines are what an agent has said of paths, one of each by its place.
func (n *network) pathLines(agent string) (there, lost int) {
	out := n.agents[agent].Output()
	return strings.Count(out, "a path to another agent is there"), strings.Count(out, "a path to another agent is lost")
}

// hasPaths waits until both agents have said of so many paths more that they are there than that they are lost.
func (n *network) hasPaths(want int) {
	n.t.Helper()
	for _, agent := range []string{"x", "y"} {
		nstest.Wait(n.t, "agent "+agent+" said: "+n.agents[agent].Output(), func() error {
			if there, lost := n.pathLines(agent); there-lost != want {
				return fmt.Errorf("%d paths have come, and %d were lost, of agent %s: want %d", there, lost, agent, want)
			}
			return nil
		})
	}
}

// carriedOver is how many bytes have come to an agent's machine by a port.
func carriedOver(t *testing.T, at *nstest.NS, port string) uint64 {
	t.Helper()
	for line := range strings.Lines(at.Run(t, "cat", "/proc/net/dev")) {
		if name, counts, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == port {
			bytes, err := strconv.ParseUint(strings.Fields(counts)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return bytes
		}
	}
	t.Fatalf("no port %s", port)
	return 0
}

// losses are ways in which a link carries nothing any more, and does again.
var losses = map[string]struct {
	cut, mend func(t *testing.T, n *network, port string)
}{
	"its link is down": {
		func(t *testing.T, n *network, port string) { n.x.Run(t, "ip", "link", "set", "dev", port, "down") },
		func(t *testing.T, n *network, port string) {
			n.x.Run(t, "ip", "link", "set", "dev", port, "up")
			n.x.Addr(t, port, map[string]string{"p1": families[1].x, "p2": "fd08::1/64"}[port]) // IPv6 addresses go with the link
		},
	},
	"it drops all": {
		func(t *testing.T, n *network, port string) {
			for _, r := range []*nstest.NS{n.x, n.y} {
				r.Run(t, "nft", "add table inet cut; add chain inet cut in { type filter hook input priority 0; }; add rule inet cut in iifname "+port+" drop")
			}
		},
		func(t *testing.T, n *network, port string) {
			for _, r := range []*nstest.NS{n.x, n.y} {
				r.Run(t, "nft", "delete table inet cut")
			}
		},
	},
}

// One connection of a program that knows nothing of it goes over both links, and on over one where the other carries nothing any
// more, whichever that is: the file is whole, and is that one. The path is used again once it is back.
func TestAFileGoesOverTwoLinksAndOutlivesOne(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for how, loss := range losses {
		for _, port := range []string{"p1", "p2"} {
			t.Run(port+", "+how, func(t *testing.T) {
				n := twoLinks(t)
				f := families[0]
				const size = 200 << 20
				url, sum := n.serve(f, size)
				out := filepath.Join(t.TempDir(), "out")
				before := map[string]uint64{"p1": carriedOver(t, n.x, "p1"), "p2": carriedOver(t, n.x, "p2")}
				curl := n.client.Start(t, "curl", "-sS", "--fail", "-o", out, url)
				nstest.Wait(t, "curl said: "+curl.Output(), func() error { return hasArrived(out, size/3) })
				loss.cut(t, n, port)
				for p, was := range before {
					if got := carriedOver(t, n.x, p) - was; got < size/20 {
						t.Errorf("%s has carried %d bytes when %d had arrived", p, got, size/3)
					}
				}
				if err := curl.Wait(); err != nil {
					t.Fatalf("curl: %v\n%s\nx: %s\ny: %s", err, curl.Output(), n.agents["x"].Output(), n.agents["y"].Output())
				}
				if sumOf(t, out) != sum {
					t.Error("the file is another one")
				}
				n.hasPaths(1)
				loss.mend(t, n, port)
				n.hasPaths(2)
			})
		}
	}
}

// Workers die, of one agent after the other: the next ones go on over both paths.
func TestWorkersDieOverTwoLinks(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n := twoLinks(t)
	const size = 200 << 20
	url, sum := n.serve(families[0], size)
	out := filepath.Join(t.TempDir(), "out")
	curl := n.client.Start(t, "curl", "-sS", "--fail", "-o", out, url)
	for part, name := range []string{"x", "y"} {
		nstest.Wait(t, "curl said: "+curl.Output(), func() error { return hasArrived(out, int64(part+1)*size/4) })
		n.kill(name, syscall.SIGKILL)
	}
	nstest.Wait(t, "curl said: "+curl.Output(), func() error { return hasArrived(out, size*5/8) })
	before := map[string]uint64{"p1": carriedOver(t, n.x, "p1"), "p2": carriedOver(t, n.x, "p2")}
	if err := curl.Wait(); err != nil {
		t.Fatalf("curl: %v\n%s\nx: %s\ny: %s", err, curl.Output(), n.agents["x"].Output(), n.agents["y"].Output())
	}
	if sumOf(t, out) != sum {
		t.Error("the file is another one")
	}
	for p, was := range before {
		if got := carriedOver(t, n.x, p) - was; got < size/40 {
			t.Errorf("behind the second worker %s has carried %d bytes", p, got)
		}
	}
}

// What the client sends goes over both links as well, and outlives one that drops all.
func TestAnUploadOutlivesALink(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n := twoLinks(t)
	c, s := n.connect(families[0], "7")
	text := []byte(content(100 << 20))
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(text)
		sent <- errors.Join(err, c.CloseWrite())
	}()
	s.SetReadDeadline(time.Now().Add(nstest.Deadline))
	got := sha256.New()
	if _, err := io.CopyN(got, s, int64(len(text)/3)); err != nil {
		t.Fatal(err)
	}
	losses["it drops all"].cut(t, n, "p1")
	s.SetReadDeadline(time.Now().Add(nstest.Deadline))
	if _, err := io.Copy(got, s); err != nil {
		t.Fatalf("%v\nx: %s\ny: %s", err, n.agents["x"].Output(), n.agents["y"].Output())
	}
	if err := <-sent; err != nil || [32]byte(got.Sum(nil)) != sha256.Sum256(text) {
		t.Errorf("what came is not what was sent, %v", err)
	}
	for _, port := range []string{"p1", "p2"} {
		if got := carriedOver(t, n.y, port); got < 5<<20 {
			t.Errorf("%s has carried %d bytes", port, got)
		}
	}
}

// hasArrived reports whether a file has so many bytes.
func hasArrived(path string, bytes int64) error {
	i, err := os.Stat(path)
	if err == nil && i.Size() < bytes {
		err = fmt.Errorf("%d bytes have arrived", i.Size())
	}
	return err
}
