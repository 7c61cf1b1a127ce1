package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// socketBuffer is what is read and written at once.
const socketBuffer = 256 << 10

// Pour writes to so many connections to addr until ctx ends: from one thread that waits for all of them, or from a thread for
// each that blocks.
func Pour(ctx context.Context, addr string, connections int, threads bool) error {
	one(threads)
	buf := make([]byte, socketBuffer)
	for range connections {
		c, err := dial(ctx, "tcp4", addr)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		// A host's default may be BBR; the thesis has CUBIC, and so have the agents beside this.
		if err := setControl(c.(*net.TCPConn), "cubic"); err != nil {
			return err
		}
		if err := busy(c.(*net.TCPConn), threads, c.Write, unix.Write, buf, nil); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// Drain reads all connections to addr until ctx ends, in either way. For each line of in it prints how many bytes it has read;
// first it prints the line "listening".
func Drain(ctx context.Context, addr string, threads bool, in io.Reader, out io.Writer) error {
	one(threads)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	fmt.Fprintln(out, "listening")
	var bytes atomic.Int64
	go func() { // ends with in
		for lines := bufio.NewScanner(in); lines.Scan(); {
			fmt.Fprintln(out, bytes.Load())
		}
	}()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := busy(c.(*net.TCPConn), threads, c.Read, unix.Read, make([]byte, socketBuffer), &bytes); err != nil {
			return err
		}
	}
}

// setControl chooses a connection's congestion control.
func setControl(c *net.TCPConn, name string) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var no error
	if err := raw.Control(func(fd uintptr) { no = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) }); err != nil {
		return err
	}
	if no != nil {
		return fmt.Errorf("congestion control %s: %w", name, no)
	}
	return nil
}

// one has one thread run Go where one is to wait for all connections.
func one(threads bool) {
	if !threads {
		runtime.GOMAXPROCS(1)
	}
}

// busy keeps a connection busy in the background until it ends: by Go's poller, or in a thread of its own.
func busy(c *net.TCPConn, threads bool, polled func([]byte) (int, error), blocking func(int, []byte) (int, error), buf []byte, bytes *atomic.Int64) error {
	do, end := polled, func() { c.Close() }
	if threads {
		file, err := c.File()
		c.Close() // file has a descriptor of its own
		if err != nil {
			return err
		}
		fd := int(file.Fd())
		if err := unix.SetNonblock(fd, false); err != nil {
			file.Close()
			return err
		}
		do, end = func(b []byte) (int, error) { return blocking(fd, b) }, func() { file.Close() }
	}
	go func() { // ends with its connection, or with the process
		if threads {
			runtime.LockOSThread()
		}
		defer end()
		for {
			n, err := do(buf)
			if n > 0 && bytes != nil {
				bytes.Add(int64(n))
			}
			if err != nil || n <= 0 {
				return
			}
		}
	}()
	return nil
}
