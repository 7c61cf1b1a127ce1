package quic

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"

	quicgo "github.com/quic-go/quic-go"
)

// serve sends back all that comes, on every stream of every connection. It counts its connections.
func serve(addr string, out io.Writer) error {
	cert, err := certificate()
	if err != nil {
		return err
	}
	l, err := quicgo.ListenAddr(addr, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{protocol}}, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "serving on", l.Addr())
	for n := 1; ; n++ {
		c, err := l.Accept(context.Background())
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "connection %d from %v\n", n, c.RemoteAddr())
		go echo(c, n, out)
	}
}

func echo(c *quicgo.Conn, n int, out io.Writer) {
	for {
		s, err := c.AcceptStream(context.Background())
		if err != nil {
			fmt.Fprintf(out, "connection %d ended: %v\n", n, err)
			return
		}
		go func() {
			defer s.Close()
			size, err := io.Copy(s, s)
			fmt.Fprintf(out, "connection %d: %d bytes sent back (error: %v)\n", n, size, err)
		}()
	}
}

// certificate is one that nobody signed: what a client trusts is not what is tried here.
func certificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}
