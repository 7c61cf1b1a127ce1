package host

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// streamerEnv makes the test binary play a server that streams: "ADDRESS WRITE READ". It writes and reads so many
// bytes of each connection's streams, and then waits to be killed; with WRITE below zero it accepts none.
const streamerEnv = "SCAFFOLD_EDGE_STREAMER"

func playStreamer() {
	var addr string
	var write, read int64
	if _, err := fmt.Sscan(os.Getenv(streamerEnv), &addr, &write, &read); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	l, err := net.Listen("tcp6", addr)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("listening")
	if write < 0 {
		select {} // and accepts nothing
	}
	for {
		c, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		roomy(c.(*net.TCPConn))
		go io.CopyN(c, NewStream(Down, 0), write)
		go func() {
			if err := NewStream(Up, 0).Check(c, read); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}()
	}
}

// roomy gives the connection a send queue of many megabytes.
func roomy(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 16<<20) })
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// A Stream is an endless sequence of bytes that is known at each position.
type Stream struct {
	seed uint64
	at   int64
}

// The two streams of a connection.
const (
	Down = 1
	Up   = 2
)

// NewStream is the stream from a position on.
func NewStream(seed uint64, at int64) *Stream { return &Stream{seed, at} }

func (s *Stream) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = s.next()
	}
	return len(b), nil
}

// next does not repeat at any distance that a lost or doubled segment could bridge.
func (s *Stream) next() byte {
	x := (uint64(s.at) + s.seed<<48) * 0x9e3779b97f4a7c15
	s.at++
	return byte(x >> 32)
}

// Check reads so many bytes and compares them.
func (s *Stream) Check(r io.Reader, n int64) error {
	b := make([]byte, 64<<10)
	for n > 0 {
		got, err := r.Read(b[:min(n, int64(len(b)))])
		for _, v := range b[:got] {
			if want := s.next(); v != want {
				return fmt.Errorf("stream %d: byte %d is %#x, want %#x", s.seed, s.at-1, v, want)
			}
		}
		n -= int64(got)
		if err != nil && n > 0 {
			return fmt.Errorf("stream %d: at byte %d, %d to come: %w", s.seed, s.at, n, err)
		}
	}
	return nil
}
