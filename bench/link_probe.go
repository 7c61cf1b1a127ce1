package bench

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/lab"
)

// Sizes of probes: the payload, and the frame that a rate counts.
const (
	probeBytes = 1400
	probeFrame = probeBytes + 8 + 40 + 14
	probePort  = 7
	probeQueue = 64 << 20 // of the receiving socket, so that only the link loses packets
)

// A linkProbe is a pair of sockets at the two ends of a link, both in this process, so that one clock
// serves both.
type linkProbe struct {
	out *net.UDPConn
	in  *net.UDPConn
	got chan arrival
	n   atomic.Int64 // arrivals
}

// An arrival is a probe that came through; times are of the machine's clock.
type arrival struct {
	number uint64
	sent   time.Duration
	came   time.Duration // when the kernel had it
}

// openProbe opens the sockets at the ends of the link from one node to its neighbour.
func openProbe(l *lab.Lab, from, to string) (*linkProbe, error) {
	p := &linkProbe{got: make(chan arrival, 1<<20)}
	far := l.Plan().Node(to)
	var local netip.AddrPort
	err := l.In(to, func() (err error) {
		p.in, err = net.ListenUDP("udp6", &net.UDPAddr{Port: probePort})
		return err
	})
	if err == nil {
		err = l.In(from, func() (err error) {
			dev := l.Plan().Node(from).Ports[0].Dev
			iface, err := net.InterfaceByName(dev)
			if err != nil {
				return err
			}
			local = netip.AddrPortFrom(far.LinkLocal.WithZone(fmt.Sprint(iface.Index)), probePort)
			p.out, err = net.DialUDP("udp6", nil, net.UDPAddrFromAddrPort(local))
			return err
		})
	}
	if err == nil {
		err = stampArrivals(p.in)
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("probe from %s to %s: %w", from, to, err)
	}
	go p.receive() // ends when the socket is closed
	return p, nil
}

// stampArrivals asks the kernel for the time of each arrival, and for room.
func stampArrivals(in *net.UDPConn) error {
	raw, err := in.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1); failed == nil {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, probeQueue)
		}
	})
	if err == nil {
		err = failed
	}
	return err
}

// arrivedAt is the time in what a socket of stampArrivals tells beside a datagram: at least CmsgLen(16) bytes.
func arrivedAt(oob []byte) time.Duration {
	stamp := oob[unix.CmsgLen(0):]
	return time.Duration(binary.NativeEndian.Uint64(stamp))*time.Second + time.Duration(binary.NativeEndian.Uint64(stamp[8:]))
}

func (p *linkProbe) receive() {
	b, oob := make([]byte, 2048), make([]byte, 128)
	for {
		n, size, _, _, err := p.in.ReadMsgUDPAddrPort(b, oob)
		if err != nil {
			close(p.got)
			return
		}
		if n != probeBytes || size < unix.CmsgLen(16) {
			continue
		}
		p.n.Add(1)
		p.got <- arrival{
			number: binary.BigEndian.Uint64(b), sent: time.Duration(binary.BigEndian.Uint64(b[8:])),
			came: arrivedAt(oob[:size]),
		}
	}
}

func (p *linkProbe) send(b []byte, number uint64) error {
	binary.BigEndian.PutUint64(b, number)
	binary.BigEndian.PutUint64(b[8:], uint64(time.Now().UnixNano()))
	_, err := p.out.Write(b[:probeBytes])
	return err
}

// settle takes what has arrived once nothing more comes for as long as quiet.
func (p *linkProbe) settle(quiet time.Duration) (all []arrival) {
	for {
		select {
		case a, ok := <-p.got:
			if !ok {
				return all
			}
			all = append(all, a)
		case <-time.After(quiet):
			return all
		}
	}
}

func (p *linkProbe) close() {
	for _, c := range []*net.UDPConn{p.in, p.out} {
		if c != nil {
			c.Close()
		}
	}
}
