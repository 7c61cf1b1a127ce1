package bench

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const (
	reactivePort  = 7
	reactiveBytes = 64
	firstSource   = 1024
	sources       = 1<<16 - firstSource
)

// A flowLoad sends the first packets of new UDP flows, each from a port of its own, and takes them at the
// far end. Both ends are in this process: one clock.
type flowLoad struct {
	out   int // a raw socket
	in    *net.UDPConn
	got   chan landing
	train uint32
	port  int // flows so far: the next source port
	to    unix.SockaddrInet6
}

// A landing is a first packet that came through; times are of the machine's clock.
type landing struct {
	train, number uint32
	sent, came    time.Duration // when the kernel had it
}

func openFlowLoad(n *reactiveNet) (*flowLoad, error) {
	l := &flowLoad{out: -1, got: make(chan landing, 1<<16), to: unix.SockaddrInet6{Addr: netip.MustParseAddr(reactiveTo).As16()}}
	err := n.to.In(func() (err error) {
		l.in, err = net.ListenUDP("udp6", &net.UDPAddr{Port: reactivePort})
		return err
	})
	if err != nil {
		return nil, err
	}
	err = n.from.In(func() (err error) {
		if l.out, err = unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP); err != nil {
			return err
		}
		return unix.SetsockoptInt(l.out, unix.IPPROTO_IPV6, unix.IPV6_CHECKSUM, 6) // where UDP has it
	})
	if err == nil {
		err = stampArrivals(l.in)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	go l.receive() // ends when the socket is closed
	return l, nil
}

func (l *flowLoad) close() {
	l.in.Close()
	if l.out >= 0 {
		unix.Close(l.out)
	}
}

func (l *flowLoad) receive() {
	b, oob := make([]byte, 2048), make([]byte, 128)
	for {
		n, size, _, _, err := l.in.ReadMsgUDPAddrPort(b, oob)
		if err != nil {
			close(l.got)
			return
		}
		if n != reactiveBytes || size < unix.CmsgLen(16) {
			continue
		}
		l.got <- landing{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), time.Duration(binary.BigEndian.Uint64(b[8:])), arrivedAt(oob[:size])}
	}
}

// begin sends the first packet of a new flow.
func (l *flowLoad) begin(number int) error {
	var b [8 + reactiveBytes]byte
	binary.BigEndian.PutUint16(b[:], uint16(firstSource+l.port%sources))
	binary.BigEndian.PutUint16(b[2:], reactivePort)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
	binary.BigEndian.PutUint32(b[8:], l.train)
	binary.BigEndian.PutUint32(b[12:], uint32(number))
	binary.BigEndian.PutUint64(b[16:], uint64(time.Now().UnixNano()))
	l.port++
	return unix.Sendto(l.out, b[:], 0, &l.to)
}

// flowQuiet is how long nothing comes before the rest of a train counts as lost.
const flowQuiet = 2 * time.Second

// run begins n flows, with that much time from one to the next, and returns what came of them.
func (l *flowLoad) run(ctx context.Context, n int, gap time.Duration) ([]landing, error) {
	l.train++
	start := time.Now()
	for i := range n {
		if gap > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(i) * gap)))
		}
		if err := l.begin(i); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return l.collect(ctx, n)
}

// collect takes what comes of a train; each flow counts once.
func (l *flowLoad) collect(ctx context.Context, n int) ([]landing, error) {
	seen := make(map[uint32]bool, n)
	var all []landing
	for len(all) < n {
		select {
		case a := <-l.got:
			if a.train == l.train && !seen[a.number] {
				seen[a.number] = true
				all = append(all, a)
			}
		case <-time.After(flowQuiet):
			return all, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return all, nil
}
