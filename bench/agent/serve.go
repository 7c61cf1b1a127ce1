package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
)

// Commands that a client sends as the first byte of a connection.
const (
	cmdEcho = 'r' // answer each byte by the instance's name and a newline
	cmdSink = 's' // read all, answer nothing
	cmdPush = 'p' // send until the client closes
)

// Serve answers on addr over TCP and UDP as the instance id until ctx ends. It prints one line,
// "listening NANOSECONDS", when both sockets are there. Resuming, it goes on with connections of other instances.
func Serve(ctx context.Context, addr, id string, resuming bool, out io.Writer) error {
	if strings.ContainsAny(id, "\n") || id == "" {
		return fmt.Errorf("instance name %q: want one non-empty line", id)
	}
	var lc net.ListenConfig
	udp, err := lc.ListenPacket(ctx, "udp6", addr)
	if err != nil {
		return err
	}
	defer udp.Close()
	tcp, err := listen(ctx, addr, resuming)
	if err != nil {
		return err
	}
	defer tcp.Close()
	fmt.Fprintf(out, "listening %d\n", Now())
	stop := context.AfterFunc(ctx, func() { tcp.Close(); udp.Close() })
	defer stop()
	answer := []byte(id + "\n")
	go serveUDP(udp, answer) // ends when udp is closed above
	for {
		c, err := tcp.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go serveConn(c, answer) // ends with its connection
	}
}

func serveUDP(pc net.PacketConn, answer []byte) {
	buf := make([]byte, 65536)
	for {
		_, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		pc.WriteTo(answer, from) //nolint:errcheck // a datagram may be lost anywhere
	}
}

// streamBuffer is what a stream is read and written by.
const streamBuffer = 256 << 10

func serveConn(c net.Conn, answer []byte) {
	defer c.Close()
	cmd := make([]byte, 1) // a crowd has ten thousand connections: no more for each
	n, err := c.Read(cmd)
	if n == 0 || err != nil {
		return
	}
	switch cmd[0] {
	case cmdEcho:
		for ; err == nil; _, err = c.Read(cmd) {
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	case cmdSink:
		for buf := make([]byte, streamBuffer); err == nil; {
			_, err = c.Read(buf)
		}
	case cmdPush:
		for buf := make([]byte, streamBuffer); err == nil; {
			_, err = c.Write(buf)
		}
	}
}
