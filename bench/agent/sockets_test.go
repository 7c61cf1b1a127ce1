package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"testing"
)

// Bytes come over all connections in both ways, and the receiver says how many.
func TestSocketsCarryByOneThreadAndByMany(t *testing.T) {
	for _, threads := range []bool{true, false} {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		ctx, cancel := context.WithCancel(t.Context())
		in, ask := io.Pipe()
		answer, out := io.Pipe()
		failed := make(chan error, 2)
		go func() { failed <- Drain(ctx, addr, threads, in, out) }()
		lines := bufio.NewReader(answer)
		if line, err := lines.ReadString('\n'); line != "listening\n" {
			t.Fatalf("%q, %v", line, err)
		}
		go func() { failed <- Pour(ctx, addr, 3, threads) }()
		for got := 0; got == 0; {
			fmt.Fprintln(ask)
			if line, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			} else if fmt.Sscan(line, &got); got < 0 {
				t.Fatalf("%q", line)
			}
		}
		cancel()
		for range 2 {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
		ask.Close()
	}
}
