package boost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/lab/agents"
)

// ownBuffer is what this process reads and writes at once: a program beside which agents are measured costs little.
const ownBuffer = 1 << 20

// reachable is how long a relay that was started may take to listen.
const reachable = 5 * time.Second

// server is where the server is reached.
func (b *rig) server(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(agents.Address(b.lab, "s1").Addr(), port)
}

// dial connects from the client; it waits for who does not listen yet.
func (b *rig) dial(ctx context.Context, to netip.AddrPort) (c net.Conn, err error) {
	for limit := time.Now().Add(reachable); ; {
		err = b.lab.In("c1", func() (err error) {
			c, err = net.DialTimeout("tcp", to.String(), reachable)
			return err
		})
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(limit) {
			return c, err
		}
		if err := bench.Pause(ctx, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// A carried stream is one that has ended.
type carried struct {
	bytes int64
	took  time.Duration // from the first byte's arrival to the last one's
	err   error
}

// carry sends so many bytes from the client to an address, and waits until the server, who listens at that port, has read
// all of them.
func (b *rig) carry(ctx context.Context, to netip.AddrPort, port uint16, size int64) (time.Duration, error) {
	l, err := b.agents.Listen(ctx, port)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	c, err := b.dial(ctx, to)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { l.Close(); c.Close() })
	defer stop()
	read := make(chan carried, 1)
	go func() { read <- readAll(ctx, l) }() // ends with its connection, or with l
	if err := sendBytes(c, size); err != nil {
		l.Close()
		return 0, errors.Join(ctx.Err(), err)
	}
	all := <-read
	if all.err == nil && all.bytes != size {
		all.err = fmt.Errorf("%d of %d bytes arrived", all.bytes, size)
	}
	return all.took, errors.Join(ctx.Err(), all.err)
}

func sendBytes(c net.Conn, size int64) error {
	buf := make([]byte, ownBuffer)
	for size > 0 {
		n, err := c.Write(buf[:min(size, ownBuffer)])
		if size -= int64(n); err != nil {
			return err
		}
	}
	return c.(interface{ CloseWrite() error }).CloseWrite()
}

// readAll reads the next connection to its end.
func readAll(ctx context.Context, l net.Listener) (all carried) {
	c, err := l.Accept()
	if err != nil {
		return carried{err: err}
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	var began time.Time
	for buf := make([]byte, ownBuffer); ; {
		n, err := c.Read(buf)
		if all.bytes += int64(n); began.IsZero() {
			began = time.Now()
		}
		if err != nil {
			if all.took = time.Since(began); !errors.Is(err, io.EOF) {
				all.err = err
			}
			return all
		}
	}
}

// A trunkBytes is what one connection between agents has sent.
type trunkBytes struct{ sent, again float64 } // again: of these, by TCP

// trunkSent reads what ss says of connections, by the near agent's address and port.
func trunkSent(text string) map[string]trunkBytes {
	all, at := map[string]trunkBytes{}, ""
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if line[0] != ' ' && line[0] != '\t' {
			if at = ""; len(words) > 3 {
				at = words[3]
			}
			continue
		}
		t := all[at]
		for _, word := range words {
			fmt.Sscanf(word, "bytes_sent:%f", &t.sent)     //nolint:errcheck // another word
			fmt.Sscanf(word, "bytes_retrans:%f", &t.again) //nolint:errcheck // the same
		}
		all[at] = t
	}
	return all
}

// gave is what the agent has given each of its connections between two looks.
func gave(before, after map[string]trunkBytes) (each []float64) {
	for at, t := range after {
		was := before[at]
		each = append(each, t.sent-t.again-was.sent+was.again)
	}
	return each
}
