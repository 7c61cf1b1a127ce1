package agent

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"
)

func TestARelayPassesBothWaysOnToTheirEnds(t *testing.T) {
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	got := make(chan []byte, 1)
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c) // to the client's end
		got <- all
		c.Write(all[:1000])
	}()
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Splice(ctx, at, server.Addr().String()) }()
	var c net.Conn
	for limit := time.Now().Add(10 * time.Second); ; {
		if c, err = net.Dial("tcp4", at); err == nil {
			break
		}
		if time.Now().After(limit) {
			t.Fatal(err)
		}
	}
	defer c.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	if _, err := c.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	back, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(back, sent[:1000]) {
		t.Errorf("%d bytes came back, want 1000: %v", len(back), err)
	}
	if there := <-got; !bytes.Equal(there, sent) {
		t.Errorf("%d of %d bytes arrived", len(there), len(sent))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
