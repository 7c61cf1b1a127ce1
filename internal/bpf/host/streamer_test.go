package host

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// streamerEnv makes the test binary play a server that streams: "ADDRESS WRITE READ". It writes and reads so many
// bytes of each connection's streams, and then waits to be killed; with WRITE below zero it accepts none.
const streamerEnv = "SCAFFOLD_EDGE_STREAMER"

// streaming is what the server holds open: Go closes a socket that nothing refers to.
var streaming []io.Closer

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
	streaming = append(streaming, l)
	fmt.Println("listening")
	if write < 0 {
		unix.Pause() // and accepts nothing
	}
	for {
		c, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		streaming = append(streaming, c)
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
		raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 8<<20) })
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// A Stream is an endless sequence of bytes that is known at each position.
type Stream struct {
	bytes []byte
	at    int64
}

// The two streams of a connection.
const (
	Down = 1
	Up   = 2
)

// period is prime: no lost or doubled run of segments is a whole number of them.
const period = 1_048_573

// NewStream is the stream from a position on.
func NewStream(seed byte, at int64) *Stream {
	s := &Stream{make([]byte, period), at}
	rand.NewChaCha8([32]byte{seed}).Read(s.bytes)
	return s
}

// ahead is what comes next, at most n bytes of it.
func (s *Stream) ahead(n int) []byte {
	part := s.bytes[s.at%period:]
	return part[:min(n, len(part))]
}

func (s *Stream) Read(b []byte) (int, error) {
	n := copy(b, s.ahead(len(b)))
	s.at += int64(n)
	return n, nil
}

// Check reads so many bytes and compares them.
func (s *Stream) Check(r io.Reader, n int64) error {
	b := make([]byte, 64<<10)
	for n > 0 {
		got, err := r.Read(b[:min(n, int64(len(s.ahead(len(b)))))])
		if !bytes.Equal(b[:got], s.ahead(got)) {
			return fmt.Errorf("wrong among the %d bytes from %d on", got, s.at)
		}
		s.at, n = s.at+int64(got), n-int64(got)
		if err != nil && n > 0 {
			return fmt.Errorf("at byte %d, %d to come: %w", s.at, n, err)
		}
	}
	return nil
}
