package ends

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// ears hear what end hosts say whose connections have no socket here yet. There are sockets for that only while somebody
// listens.
type ears struct {
	mu      sync.Mutex
	waiting map[pair]chan heard
	taps    []*os.File
}

// heardAtOnce is how many segments of a connection wait to be looked at; more are not needed.
const heardAtOnce = 64

var errAsked = errors.New("the same connection is being taken over already")

// listen gives what comes from remote to local to the channel until done.
func (e *ears) listen(p pair) (said <-chan heard, done func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting[p] != nil {
		return nil, nil, errAsked
	}
	if len(e.waiting) == 0 {
		if err := e.open(); err != nil {
			e.close()
			return nil, nil, err
		}
		e.waiting = map[pair]chan heard{}
	}
	c := make(chan heard, heardAtOnce)
	e.waiting[p] = c
	return c, func() { e.leave(p) }, nil
}

func (e *ears) leave(p pair) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if delete(e.waiting, p); len(e.waiting) == 0 {
		e.close()
	}
}

func (e *ears) close() {
	for _, tap := range e.taps {
		tap.Close()
	}
	e.taps = nil
}

// seen is how much of a packet is copied: headers, with all options that there may be.
const seen = ip6Len + 60

// open makes a socket for each family that hears what arrives at any port, TCP alone. Each is of a protocol of its own: what
// this machine sends is not heard by those. A frame for the address of another machine is not, either, though a switch may
// send it to all: it shows nothing of where the end host's way goes.
func (e *ears) open() error {
	for protocol, at := range map[uint16]uint32{unix.ETH_P_IP: 9, unix.ETH_P_IPV6: 6} {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("listen for end hosts: %w", err)
		}
		tap := os.NewFile(uintptr(fd), "what end hosts say")
		e.taps = append(e.taps, tap)
		program := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0xfffff004}, // SKF_AD_OFF + SKF_AD_PKTTYPE
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.PACKET_HOST, Jf: 3},
			{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: at},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: protoTCP, Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: seen},
			{Code: unix.BPF_RET | unix.BPF_K},
		}
		err = errors.Join(
			unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, protocol))}), // now it hears
		)
		if err != nil {
			return fmt.Errorf("listen for end hosts: %w", err)
		}
		go e.read(tap) // until the tap is closed
	}
	return nil
}

// read hears until its tap is closed.
func (e *ears) read(tap *os.File) {
	b := make([]byte, seen)
	for {
		n, err := tap.Read(b)
		if err != nil {
			return
		}
		p, h, ok := hear(b[:n])
		if !ok {
			continue
		}
		e.mu.Lock()
		select {
		case e.waiting[p] <- h: // nil: nobody waits for it
		default:
		}
		e.mu.Unlock()
	}
}
