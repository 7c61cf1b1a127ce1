package gateway

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeSize is how much of a stream is between two sockets at most, besides what they hold themselves.
const pipeSize = 256 << 10

// A pipe carries bytes from one socket to the other without their coming to us. A direction has one only
// while bytes are on their way: idle connections cost none.
type pipe struct{ r, w int }

// spare are pipes that nobody uses now.
var spare = make(chan pipe, 64)

func getPipe() (pipe, error) {
	select {
	case p := <-spare:
		return p, nil
	default:
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return pipe{}, err
	}
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeSize) // a smaller one does as well
	return pipe{fds[0], fds[1]}, nil
}

// put gives an empty pipe back.
func (p pipe) put() {
	select {
	case spare <- p:
	default:
		p.close()
	}
}

func (p pipe) close() {
	unix.Close(p.r)
	unix.Close(p.w)
}

// fill waits for bytes of a socket and takes them into a pipe. It ends with io.EOF.
func fill(from syscall.RawConn) (p pipe, n int, err error) {
	fail := from.Read(func(fd uintptr) bool {
		if p, err = getPipe(); err != nil {
			return true
		}
		n, err = splice(int(fd), p.w, pipeSize)
		if n > 0 {
			return true
		}
		p.put()
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case fail != nil:
		return p, 0, fail
	case err == nil && n == 0:
		return p, 0, io.EOF
	}
	return p, n, err
}

// flush gives what is in the pipe to a socket, waiting as long as its peer takes nothing.
func flush(p pipe, to syscall.RawConn, n int) (err error) {
	fail := to.Write(func(fd uintptr) bool {
		for n > 0 {
			var moved int
			moved, err = splice(p.r, int(fd), n)
			if err != nil {
				return !errors.Is(err, unix.EAGAIN)
			}
			n -= moved
		}
		return true
	})
	if fail != nil {
		err = fail
	}
	if err != nil {
		p.close() // something may be left in it
		return err
	}
	p.put()
	return nil
}

func splice(from, to, n int) (int, error) {
	for {
		moved, err := unix.Splice(from, nil, to, nil, n, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		if err != unix.EINTR {
			return int(max(moved, 0)), err
		}
	}
}

// await waits until a socket has bytes, its end, or an error, and takes nothing.
func await(c syscall.RawConn) (err error) {
	var b [1]byte
	fail := c.Read(func(fd uintptr) bool {
		_, _, err = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return !errors.Is(err, unix.EAGAIN) && err != unix.EINTR
	})
	if fail != nil {
		return fail
	}
	return err
}
