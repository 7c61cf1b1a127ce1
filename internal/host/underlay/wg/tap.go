package wg

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/linux/tuntap"
)

// offloads: large segments of TCP over IPv6, which is what the network has, come uncut, and not summed.
const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO6

// tapQueue is how many frames wait in the kernel for this process. Each may be of 64 kB: no more, or a flow with a
// large window would fill it for a tenth of a second.
const tapQueue = 128

// A tap is the end of a tunnel: an interface in the daemon's namespace that ends with this process.
type tap struct {
	in   underlay.Port
	file *os.File
	raw  syscall.RawConn

	mu   sync.Mutex // of writers
	join joiner
}

// openTap makes the interface in the namespace of the calling thread, set down.
func openTap(in underlay.Port) (*tap, error) {
	fd, err := tuntap.Open(in.Name, tuntap.TAP|tuntap.Header, offloads)
	if err != nil {
		return nil, err
	}
	t := &tap{in: in, file: os.NewFile(uintptr(fd), in.Name)}
	if t.raw, err = t.file.SyscallConn(); err != nil {
		t.file.Close()
		return nil, err
	}
	return t, nil
}

// read waits for a frame. While none comes it has no room of its own: there may be thousands of tunnels.
func (t *tap) read() (f *frame, err error) {
	waited := t.raw.Read(func(fd uintptr) bool {
		f = frames.Get().(*frame)
		if f.length, err = unix.Read(int(fd), f.room[:]); err != nil {
			frames.Put(f)
		}
		return err != unix.EAGAIN
	})
	if err := errors.Join(waited, err); err != nil {
		return nil, err
	}
	f.from = t
	return f, nil
}

// write sends one frame that is in pieces.
func (t *tap) write(pieces [][]byte) (err error) {
	waited := t.raw.Write(func(fd uintptr) bool {
		_, err = unix.Writev(int(fd), pieces)
		return err != unix.EAGAIN
	})
	return errors.Join(waited, err)
}
