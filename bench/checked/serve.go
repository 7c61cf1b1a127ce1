package checked

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// Serve is the server of streams and datagrams on addr until ctx ends; gap is the shortest that is noted.
func Serve(ctx context.Context, addr string, gap time.Duration, log *Log) error {
	var lc net.ListenConfig
	udp, err := lc.ListenPacket(ctx, "udp6", addr)
	if err != nil {
		return err
	}
	defer udp.Close()
	tcp, err := lc.Listen(ctx, "tcp6", addr)
	if err != nil {
		return err
	}
	defer tcp.Close()
	log.note(Note{Kind: Listening, At: agent.Now(), Local: tcp.Addr().String()})
	stop := context.AfterFunc(ctx, func() { tcp.Close(); udp.Close() })
	defer stop()
	go answer(udp, log) // ends when udp is closed
	for {
		c, err := tcp.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go serveStream(ctx, c.(*net.TCPConn), gap, log) // ends with its connection
	}
}

// serveStream reads what the client wants and does it until the client has sent all.
func serveStream(ctx context.Context, c *net.TCPConn, gap time.Duration, log *Log) {
	h, _, err := greet(c)
	if err != nil {
		c.Close() // it has not begun
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
			log.note(Note{Kind: Wrong, At: agent.Now(), Proto: "tcp", Local: c.LocalAddr().String(), Peer: c.RemoteAddr().String(), Err: err.Error()})
		}
		return
	}
	newEnd(c, log, h, false, gap).run(ctx) //nolint:errcheck // its note says it
}

// greet reads how a stream begins.
func greet(c net.Conn) (h Hello, first []byte, err error) {
	first = make([]byte, helloLen)
	if _, err = io.ReadFull(c, first); err == nil {
		h, err = ParseHello(first)
	}
	return h, first, err
}
