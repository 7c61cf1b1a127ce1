package underlay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// An Echo asks the other end of a tunnel whether it is there, and what size of packets comes through: by
// ICMPv6, which the kernel answers, with or without a daemon. It is for one goroutine.
type Echo struct {
	conn *net.IPConn
	zone string // the interface by number: package net remembers names for a minute, whoever has them by then
	id   uint16
	seq  uint16
}

// SmallEcho is the size of a question whose size does not matter.
const SmallEcho = ipv6Header + echoHeader

const (
	echoRequest, echoReply = 128, 129
	echoHeader             = 8
)

// OpenEcho asks on one interface. Its packets are as large as they are told to be, whatever the kernel thinks
// of the path.
func OpenEcho(dev string) (*Echo, error) {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return nil, fmt.Errorf("ask the other end of %s: %w", dev, err)
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		var filter unix.ICMPv6Filter
		for i := range filter.Data {
			filter.Data[i] = ^uint32(0)
		}
		filter.Data[echoReply/32] &^= 1 << (echoReply % 32)
		if fail := c.Control(func(fd uintptr) {
			err = errors.Join(unix.BindToDevice(int(fd), dev),
				unix.SetsockoptICMPv6Filter(int(fd), unix.IPPROTO_ICMPV6, unix.ICMPV6_FILTER, &filter),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE))
		}); fail != nil {
			return fail
		}
		return err
	}}
	conn, err := lc.ListenPacket(context.Background(), "ip6:ipv6-icmp", "::")
	if err != nil {
		return nil, fmt.Errorf("ask the other end of %s: %w", dev, err)
	}
	return &Echo{conn: conn.(*net.IPConn), zone: strconv.Itoa(link.Attrs().Index), id: uint16(rand.Uint32())}, nil
}

// Close ends it.
func (e *Echo) Close() error { return e.conn.Close() }

// Ask sends a packet of so many bytes, IPv6 header included, and waits for the like. It fails with
// os.ErrDeadlineExceeded where none comes in time, with syscall.EMSGSIZE where the interface does not take it.
func (e *Echo) Ask(to netip.Addr, size int, wait time.Duration) (time.Duration, error) {
	e.seq++
	b := make([]byte, max(size-ipv6Header, echoHeader))
	b[0] = echoRequest
	binary.BigEndian.PutUint16(b[4:], e.id)
	binary.BigEndian.PutUint16(b[6:], e.seq)
	began := time.Now()
	e.conn.SetReadDeadline(began.Add(wait)) //nolint:errcheck // closed: the write tells
	if _, err := e.conn.WriteToIP(b, &net.IPAddr{IP: to.AsSlice(), Zone: e.zone}); err != nil {
		return 0, err
	}
	reply := make([]byte, maxMTU)
	for {
		n, err := e.conn.Read(reply)
		if err != nil {
			return 0, err
		}
		if n == len(b) && reply[0] == echoReply && binary.BigEndian.Uint16(reply[4:]) == e.id && binary.BigEndian.Uint16(reply[6:]) == e.seq {
			return time.Since(began), nil
		}
	}
}

// How long the other end has to answer the first question, and each of those that follow: so many times the
// round trip, in limits.
const (
	askAgain   = 100 * time.Millisecond
	trips      = 4
	leastPause = 50 * time.Millisecond
	mostPause  = time.Second
	tries      = 3 // of one size
	closely    = 8 // bytes
)

// Reply waits until the other end answers, and says how long a round trip takes.
func (e *Echo) Reply(ctx context.Context, to netip.Addr, limit time.Duration) (time.Duration, error) {
	for until := time.Now().Add(limit); ; {
		trip, err := e.Ask(to, MinMTU, min(askAgain, max(time.Until(until), time.Millisecond)))
		if err == nil {
			return trip, nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		silent := errors.Is(err, os.ErrDeadlineExceeded)
		if time.Now().After(until) {
			if silent {
				return 0, fmt.Errorf("nothing came back within %v", limit)
			}
			return 0, err
		}
		if !silent {
			time.Sleep(askAgain) // its address is not there yet, or its route
		}
	}
}

// Largest finds the largest packet that comes through and back, at most most bytes, and at least MinMTU, which is
// known to. Sizes that the path drops without a word cost time; where the kernel was told by ICMP, bound knows.
func (e *Echo) Largest(ctx context.Context, to netip.Addr, most int, trip time.Duration, bound func() int) int {
	pause := min(max(trips*trip, leastPause), mostPause)
	fits := func(size int) bool {
		for range tries {
			if _, err := e.Ask(to, size, pause); err == nil {
				return bound() >= size // else what the path did not take was cut in two, now that the kernel knows
			} else if ctx.Err() != nil || errors.Is(err, unix.EMSGSIZE) {
				return false
			}
		}
		return false
	}
	known, next := MinMTU, most
	for known < most && ctx.Err() == nil {
		if fits(next) {
			known = next
		} else {
			most = min(next-1, max(known, bound()))
		}
		if most-known < closely {
			break
		}
		next = (known + most + 1) / 2
		if told := bound(); told <= most && told > known {
			next, most = told, told
		}
	}
	return known
}
