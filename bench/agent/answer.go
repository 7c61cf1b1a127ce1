package agent

import (
	"context"
	"fmt"
	"io"
	"net"
)

// Answer answers each byte of each connection to addr by one until ctx ends. It prints the line "listening" when it does.
func Answer(ctx context.Context, addr string, out io.Writer) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	fmt.Fprintln(out, "listening")
	AnswerAll(l)
	return nil
}

// AnswerAll does so until the listener is closed.
func AnswerAll(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go answerOne(c) // ends with its connection
	}
}

func answerOne(c net.Conn) {
	defer c.Close()
	for one := make([]byte, 1); ; {
		if _, err := c.Read(one); err != nil {
			return
		}
		if _, err := c.Write(one); err != nil {
			return
		}
	}
}
