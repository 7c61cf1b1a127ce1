package nstest

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Frames is a raw socket on one interface: it sees every frame in both directions, Ethernet header
// first, and sends frames as they are.
type Frames struct {
	name string
	fd   int
	file *os.File
}

// Frames opens a raw socket on dev until the test ends. Frames that pass from now on are kept until
// Next reads them.
func (n *NS) Frames(t testing.TB, dev string) *Frames {
	t.Helper()
	f := &Frames{name: n.Name + "/" + dev}
	n.Do(func() {
		all := int(binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}))
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, all)
		if err != nil {
			t.Fatalf("%s: raw socket: %v", f.name, err)
		}
		f.fd, f.file = fd, os.NewFile(uintptr(fd), f.name) // pollable: read deadlines work
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
		addr := &unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: n.Index(t, dev)}
		if err := unix.Bind(fd, addr); err != nil {
			t.Fatalf("%s: bind: %v", f.name, err)
		}
	})
	t.Cleanup(func() { f.file.Close() })
	return f
}

// Send sends one frame.
func (f *Frames) Send(t testing.TB, frame []byte) {
	t.Helper()
	if _, err := f.file.Write(frame); err != nil {
		t.Fatalf("%s: send %d bytes: %v", f.name, len(frame), err)
	}
}

// Next returns the next frame that match wants; the deadline ends the test.
func (f *Frames) Next(t testing.TB, what string, match func(frame []byte) bool) []byte {
	t.Helper()
	f.file.SetReadDeadline(time.Now().Add(Deadline))
	buf, seen := make([]byte, 1<<17), 0
	for {
		n, err := f.file.Read(buf)
		if err != nil {
			t.Fatalf("%s: no %s among %d frames: %v", f.name, what, seen, err)
		}
		if seen++; match(buf[:n]) {
			return append([]byte(nil), buf[:n]...)
		}
	}
}

// Drain returns the frames that are waiting now, without waiting for more.
func (f *Frames) Drain(t testing.TB) (frames [][]byte) {
	t.Helper()
	buf := make([]byte, 1<<17)
	for {
		n, _, err := unix.Recvfrom(f.fd, buf, unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN:
			return frames
		case err != nil:
			t.Fatal(fmt.Errorf("%s: read: %w", f.name, err))
		}
		frames = append(frames, append([]byte(nil), buf[:n]...))
	}
}
