package emubench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/bench/place"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
)

// Pairs are pairs of routers of a lab that are to reach each other. The host sends an echo request to the first in the
// name of the second: so the answer goes from the first to the second, which counts it.
type pairs struct {
	lab     *lab.Lab
	large   large
	own     []netip.Addr // of the routers
	names   []string
	host    netip.Addr
	out, in int // sockets of the host
}

// sampled is how many pairs are tried where not all are.
const sampled = 200_000

func newPairs(l *lab.Lab, of large) (*pairs, error) {
	p := &pairs{lab: l, large: of, out: -1, in: -1}
	for _, n := range l.Plan().Nodes {
		switch n.Kind {
		case file.Emulated:
			p.own, p.names = append(p.own, n.Own), append(p.names, n.Name)
		case file.Host:
			for _, a := range n.Ports[0].Addrs {
				if a.Addr().Is6() {
					p.host = a.Addr()
				}
			}
		}
	}
	err := l.In("host", func() (err error) {
		if p.out, err = unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW); err != nil {
			return err
		}
		p.in, err = unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
		return err
	})
	if err == nil {
		patience := unix.NsecToTimeval(int64(time.Second))
		err = unix.SetsockoptTimeval(p.in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience)
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("open sockets on the host: %w", err)
	}
	return p, nil
}

func (p *pairs) close() {
	for _, fd := range []int{p.out, p.in} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// count is how many pairs are tried.
func (p *pairs) count() int {
	if p.large.allPairs {
		return len(p.names) * len(p.names)
	}
	return sampled
}

func (p *pairs) what() string {
	if p.large.allPairs {
		return "all pairs,"
	}
	return "pairs drawn at random,"
}

// pair is the n-th, from 0.
func (p *pairs) pair(n int, rng *rand.Rand) (first, second int) {
	if p.large.allPairs {
		return n / len(p.names), n % len(p.names)
	}
	return rng.IntN(len(p.names)), rng.IntN(len(p.names))
}

// ahead is how many packets are under way at most: fewer than wait at an interface.
const ahead = 2000

// missing is how many pairs do not reach each other.
func (p *pairs) missing(ctx context.Context) (int, error) {
	expected, err := p.answered(ctx)
	if err != nil {
		return 0, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range p.count() {
		if n%ahead == 0 {
			if err := p.meet(ctx); err != nil {
				return 0, err
			}
		}
		first, second := p.pair(n, rng)
		if err := p.send(p.own[second], p.own[first], 0); err != nil {
			return 0, err
		}
		expected[second]++
	}
	if err := p.meet(ctx); err != nil {
		return 0, err
	}
	now, err := p.answered(ctx)
	missing := 0
	for i := range now {
		missing += max(0, expected[i]-now[i])
	}
	return missing, err
}

// meet returns when all that was sent before has entered the network: the host itself has got an answer.
func (p *pairs) meet(ctx context.Context) error {
	return place.Await(ctx, "the first router does not answer", func() error {
		const mark = 1
		if err := p.send(p.host, p.own[0], mark); err != nil {
			return err
		}
		b := make([]byte, 256)
		for {
			n, _, err := unix.Recvfrom(p.in, b, 0)
			if err != nil {
				return err
			}
			if n >= echoLen && b[0] == echoReply && binary.BigEndian.Uint16(b[6:]) == mark {
				return nil
			}
		}
	})
}

// Echo requests of ICMPv6 (RFC 4443).
const (
	echoRequest = 128
	echoReply   = 129
	echoLen     = 8
)

// send sends an echo request in anybody's name.
func (p *pairs) send(from, to netip.Addr, number uint16) error {
	b := make([]byte, 40+echoLen)
	b[0], b[5], b[6], b[7] = 0x60, echoLen, unix.IPPROTO_ICMPV6, hopLimit
	copy(b[8:], from.AsSlice())
	copy(b[24:], to.AsSlice())
	b[40] = echoRequest
	binary.BigEndian.PutUint16(b[46:], number)
	sum := uint32(echoLen + unix.IPPROTO_ICMPV6)
	for i := 8; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(b[42:], ^uint16(sum))
	return unix.Sendto(p.out, b, 0, &unix.SockaddrInet6{Addr: to.As16()})
}

// answered is how many answers each router has got.
func (p *pairs) answered(ctx context.Context) ([]int, error) {
	all := make([]int, len(p.names))
	for i, name := range p.names {
		text, err := p.lab.Engine().Client().Get(ctx, name, "drops")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "answered "); ok {
				if _, err := fmt.Sscan(rest, &all[i]); err != nil {
					return nil, fmt.Errorf("drops of %s: %q: %w", name, line, err)
				}
			}
		}
	}
	return all, nil
}
