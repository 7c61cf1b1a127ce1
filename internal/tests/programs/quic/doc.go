// Package quic is a server and a client that talk QUIC with quic-go, as any program would: neither knows of
// Scaffold, and neither asks the library to change its path. The tests of internal/tests/programs run them while
// the hosts under them move. A server that moves is what QUIC itself does not have: only clients may change
// their address (RFC 9000, section 9).
package quic

import (
	"errors"
	"fmt"
	"io"
)

const (
	protocol = "ride" // of TLS's ALPN
	block    = 16384  // bytes that a client sends, and gets back, for each line that it reads
)

// Main is the command: "serve ADDRESS:PORT" or "ask NAME:PORT".
func Main(args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1], out)
	case len(args) == 2 && args[0] == "ask":
		return ask(args[1], in, out)
	}
	return errors.New("usage: serve ADDRESS:PORT | ask NAME:PORT")
}

// byteAt is what stands at a position of the stream, the same in each run and without a short period.
func byteAt(at int64) byte { return byte(at>>17) ^ byte(at>>9) ^ byte(at)*31 }

// fill writes what stands in a stream from a position on.
func fill(b []byte, at int64) {
	for i := range b {
		b[i] = byteAt(at + int64(i))
	}
}

// check is an error if it is not what stands there.
func check(b []byte, at int64) error {
	for i := range b {
		if b[i] != byteAt(at+int64(i)) {
			return fmt.Errorf("byte %d of the stream came back wrong", at+int64(i))
		}
	}
	return nil
}
