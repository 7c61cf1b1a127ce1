package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// server answers sets as memcached does.
func server(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() { // ends with the socket
		b := make([]byte, 2048)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			answer := "ERROR\r\n"
			if text := string(b[header:n]); strings.HasPrefix(text, "set key-") && strings.HasSuffix(text, " 0 0 3\r\nxxx\r\n") {
				answer = "STORED\r\n"
			}
			c.WriteTo(append(b[:header:header], answer...), from)
		}
	}()
	return c.LocalAddr().String()
}

func TestEveryWriteIsCounted(t *testing.T) {
	w, err := newWriter([]string{server(t), server(t)}, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.run(1000, 50*time.Millisecond)
	a, b := w.partitions[0], w.partitions[1]
	if a.stored == 0 || b.stored == 0 || a.stored != a.sent || b.stored != b.sent {
		t.Error(w.report())
	}
	if text := w.report(); !strings.Contains(text, " 0 not answered, 0 refused") {
		t.Error(text)
	}
}

func TestARequestIsOneDatagram(t *testing.T) {
	r := request(7, "k", []byte("v"))
	if binary.BigEndian.Uint16(r) != 7 || !bytes.Equal(r[2:8], []byte{0, 0, 0, 1, 0, 0}) || string(r[8:]) != "set k 0 0 1\r\nv\r\n" {
		t.Errorf("%q", r)
	}
}

func TestWatchPrintsTheCount(t *testing.T) {
	near, far := net.Pipe()
	go func() { // ends with the pipe
		b := make([]byte, 64)
		for i := range 2 {
			if n, err := far.Read(b); err != nil || string(b[:n]) != "stats\r\n" {
				break
			}
			fmt.Fprintf(far, "STAT pid 1\r\nSTAT cmd_set %d\r\nSTAT cmd_get 9\r\nEND\r\n", i+5)
		}
		far.Close()
	}()
	var out bytes.Buffer
	ask(&out, near)
	if out.String() != "5\n6\n" {
		t.Errorf("printed %q", &out)
	}
}

func TestBadArgumentsAreRefused(t *testing.T) {
	for _, names := range [][]string{nil, {"no port"}} {
		if _, err := newWriter(names, 1, 1); err == nil {
			t.Errorf("%q was taken", names)
		}
	}
}
