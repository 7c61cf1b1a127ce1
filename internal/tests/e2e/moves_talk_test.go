package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A talk is a flow in both directions whose every byte is checked at the other end.
type talk struct {
	name     string
	up, down atomic.Int64 // bytes, or answers, that arrived and were right
	failed   atomic.Pointer[error]
	conn     net.Conn
}

// byteAt is what stands at a position of the stream.
func byteAt(salt byte, at int64) byte { return byte(at>>16) ^ byte(at>>8) ^ byte(at)*31 ^ salt }

func (k *talk) fail(format string, args ...any) {
	err := fmt.Errorf(k.name+": "+format, args...)
	k.failed.CompareAndSwap(nil, &err)
}

// speak writes the stream in small pieces until the connection is closed.
func (k *talk) speak(c net.Conn, salt byte) {
	buf := make([]byte, 1000)
	for at := int64(0); ; time.Sleep(2 * time.Millisecond) {
		for i := range buf {
			buf[i] = byteAt(salt, at+int64(i))
		}
		n, err := c.Write(buf)
		at += int64(n)
		if err != nil {
			k.over(err)
			return
		}
	}
}

// hear checks the stream.
func (k *talk) hear(c net.Conn, salt byte, count *atomic.Int64) {
	buf := make([]byte, 1<<14)
	for at := int64(0); ; {
		n, err := c.Read(buf)
		for i := range n {
			if buf[i] != byteAt(salt, at+int64(i)) {
				k.fail("byte %d is wrong", at+int64(i))
			}
		}
		at += int64(n)
		count.Add(int64(n))
		if err != nil {
			k.over(err)
			return
		}
	}
}

func (k *talk) over(err error) {
	if !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
		k.fail("%w", err)
	}
}

// talkTCP opens a stream from c1 to an instance on the host.
func (m *mobile) talkTCP(host string, at int) *talk {
	m.t.Helper()
	return m.talkBetween("c1", host, at)
}

func (m *mobile) talkBetween(from, host string, at int) *talk {
	m.t.Helper()
	k := &talk{name: fmt.Sprintf("stream to %s port %d", host, at)}
	l := m.at(host).Listen(m.t, "tcp6", port(m.addr, at))
	m.serving(m.name, "tcp", at, 1)
	go accept(l, func(c net.Conn) {
		go k.speak(c, 1)
		k.hear(c, 2, &k.up)
	})
	k.conn = m.dial(from, "tcp6", port(m.addr, at))
	go k.speak(k.conn, 2)
	go k.hear(k.conn, 1, &k.down)
	return k
}

// talkUDP asks an instance on the host again and again. Datagrams may be lost; answers come from that host.
func (m *mobile) talkUDP(host string, at int) *talk {
	m.t.Helper()
	k := &talk{name: fmt.Sprintf("datagrams to %s port %d", host, at)}
	m.serveUDP(host, port(m.addr, at))
	m.serving(m.name, "udp", at, 1)
	k.conn = m.dial("c1", "udp6", port(m.addr, at))
	go func() {
		for n := uint64(0); ; n++ {
			_, err := k.conn.Write(binary.BigEndian.AppendUint64(nil, n)) // fails while the link is down
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	go func() {
		buf := make([]byte, 100)
		for {
			size, err := k.conn.Read(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if want := host + " "; err == nil && (size != len(want)+8 || string(buf[:len(want)]) != want) {
				k.fail("answered with %q", buf[:size])
			} else if err == nil {
				k.up.Add(1)
				k.down.Add(1)
			}
		}
	}()
	return k
}

// goOn waits until each talk has got on by so much in both directions since now.
func (m *mobile) goOn(what string, talks ...*talk) {
	m.t.Helper()
	for _, k := range talks {
		step := int64(20000)
		if k.conn.LocalAddr().Network() == "udp" {
			step = 10
		}
		up, down := k.up.Load()+step, k.down.Load()+step
		nstest.Wait(m.t, m.look(), func() error {
			if err := k.failed.Load(); err != nil {
				m.t.Fatalf("after %s: %v\nlook at: %s", what, *err, m.look())
			}
			if k.up.Load() < up || k.down.Load() < down {
				return fmt.Errorf("after %s: %s has got no further than %d up and %d down, want %d and %d", what, k.name, k.up.Load(), k.down.Load(), up, down)
			}
			return nil
		})
	}
}

// talks are one of each kind to a server that stays and to one that moves.
func (m *mobile) talks(first int) (all []*talk) {
	for i, host := range []string{"s1", "s2"} {
		all = append(all, m.talkTCP(host, first+i), m.talkUDP(host, first+i))
	}
	m.goOn("the beginning", all...)
	return all
}
