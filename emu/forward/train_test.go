package forward_test

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// segmented is a UDP socket that hands the kernel trains of datagrams, which may be fragmented or not.
func segmented(t *testing.T, ns *nstest.NS, to string, size, discover int) net.Conn {
	t.Helper()
	c, err := ns.Dial("udp4", to)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	raw, err := c.(*net.UDPConn).SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		must(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size))
		must(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, discover))
	}))
	return c
}

// A train of datagrams that a link does not take is fragmented datagram by datagram, or refused with one error.
func TestTrainsMeetAnMTU(t *testing.T) {
	h := newPath(t, 3, emu.Params{}, func(i int, c *forward.Config) {
		if i == 1 {
			c.Ports[0].MTU, c.Ports[1].MTU = 600, 600
		}
	})
	const count, size = 10, 1400
	sent := make([]byte, count*size)
	for i := range sent {
		sent[i] = byte(i / size * 7)
	}
	in := h.b.ListenPacket(t, "udp4", "10.0.2.1:9")
	in.SetReadDeadline(time.Now().Add(nstest.Deadline))
	_, err := segmented(t, h.a, "10.0.2.1:9", size, unix.IP_PMTUDISC_DONT).Write(sent)
	must(t, err)
	var got []byte
	for range count {
		b := make([]byte, 2000)
		n, _, err := in.ReadFrom(b)
		if err != nil {
			t.Fatalf("%d bytes arrived: %v\n%s", len(got), err, h.state(t))
		}
		got = append(got, b[:n]...)
	}
	if n := counters(t, h.Net, h.nodes[1], h.routers[1]); !bytes.Equal(got, sent) || n.Fragmented != count {
		t.Errorf("%d of %d bytes, %d datagrams fragmented", len(got), len(sent), n.Fragmented)
	}

	c := segmented(t, h.a, "10.0.2.1:9", size, unix.IP_PMTUDISC_DO)
	_, err = c.Write(sent)
	must(t, err)
	c.SetReadDeadline(time.Now().Add(nstest.Deadline))
	if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "message too long") {
		t.Errorf("%v\n%s", err, h.state(t))
	}
	if n := counters(t, h.Net, h.nodes[1], h.routers[1]); n.Told[forward.TooBig] != 1 || n.Drops[forward.TooBig] != count {
		t.Errorf("%+v", n)
	}
}
