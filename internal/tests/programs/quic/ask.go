package quic

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"

	quicgo "github.com/quic-go/quic-go"
)

// ask opens one connection and one stream. For each line of in it sends a block, and prints the line once
// the block is back and right.
func ask(addr string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	c, err := quicgo.DialAddr(ctx, addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}, nil)
	if err != nil {
		return err
	}
	s, err := c.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for at := int64(0); lines.Scan(); at += block {
		if err := exchange(s, at); err != nil {
			return fmt.Errorf("at byte %d: %w", at, err)
		}
		fmt.Fprintln(out, lines.Text())
	}
	if err := s.Close(); err != nil {
		return err
	}
	if n, err := io.Copy(io.Discard, s); n > 0 || err != nil {
		return fmt.Errorf("at the end of the stream: %d bytes too many, %w", n, err)
	}
	return c.CloseWithError(0, "done")
}

// exchange sends one block and reads it again.
func exchange(s *quicgo.Stream, at int64) error {
	b := make([]byte, block)
	fill(b, at)
	if _, err := s.Write(b); err != nil {
		return err
	}
	clear(b)
	if _, err := io.ReadFull(s, b); err != nil {
		return err
	}
	return check(b, at)
}
