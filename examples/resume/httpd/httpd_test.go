package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"scaffold.dev/scaffold"
	"scaffold.dev/scaffold/examples/resume/record"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// blob is what is served, and a directory that holds it as "blob".
func blob(t *testing.T, size int) ([]byte, string) {
	t.Helper()
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(b)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "blob"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return b, dir
}

// instance is a server whose connections are what id says.
func instance(t *testing.T, root, sessions string, id scaffold.Identity, err error) *server {
	t.Helper()
	files, e := os.OpenRoot(root)
	if e != nil {
		t.Fatal(e)
	}
	t.Cleanup(func() { files.Close() })
	shared, e := record.Open(sessions, time.Hour)
	if e != nil {
		t.Fatal(e)
	}
	return &server{root: files, sessions: shared, log: t.Logf,
		identify: func(net.Conn) (scaffold.Identity, error) { return id, err }}
}

// TestUnmodifiedClientsGetTheFile is about plain HTTP: on a machine without Scaffold.
func TestUnmodifiedClientsGetTheFile(t *testing.T) {
	want, root := blob(t, 3<<20)
	s := instance(t, root, t.TempDir(), scaffold.Identity{}, scaffold.ErrNoFlow)
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go s.accept(l)
	url := "http://" + l.Addr().String()
	for _, argv := range [][]string{
		{"curl", "-gsSf", url + "/blob", url + "/nothing/../blob"}, // one connection, two answers
		{"curl", "-gsSf0", url + "/blob", url + "/blob"},
		{"wget", "-qO-", url + "/blob", url + "/blob"},
	} {
		got, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil || !bytes.Equal(got, append(want[:len(want):len(want)], want...)) {
			t.Errorf("%q: %v, %d bytes, want %d that are the file twice", argv, err, len(got), 2*len(want))
		}
	}
	for path, code := range map[string]string{"/nothing": "404", "/": "404", "/../etc/passwd": "404"} {
		got, _ := exec.Command("curl", "-gs", "--path-as-is", "-o", "/dev/null", "-w", "%{http_code}", url+path).Output()
		if string(got) != code {
			t.Errorf("%s: %s, want %s", path, got, code)
		}
	}
	nstest.Wait(t, "the server's lines above", func() error {
		if left, err := s.sessions.Keys(""); err != nil || len(left) != 0 {
			return fmt.Errorf("sessions that ended are still recorded: %q (%v)", left, err)
		}
		return nil
	})
}

// port of the client of every connection in talk: the record's key has it.
const port = 40000

// oneAddr gives all connections of a test the same peer, as failing over does.
type oneAddr struct{ net.Conn }

func (oneAddr) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv6loopback, Port: port} }

// talk lets a server answer what a client sends and returns the first bytes of its answer, all for -1. Then
// the client is gone, as it is for an instance that was cut off.
func talk(t *testing.T, s *server, send string, take int) []byte {
	t.Helper()
	client, at := net.Pipe()
	served := make(chan bool)
	go func() { defer close(served); s.serve(oneAddr{at}) }()
	go io.WriteString(client, send) // ends with the pipe
	got := make([]byte, max(take, 0))
	var err error
	if take >= 0 {
		_, err = io.ReadFull(client, got)
	} else {
		got, err = io.ReadAll(client)
	}
	if err != nil {
		t.Fatalf("after %d bytes: %v", len(got), err)
	}
	client.Close()
	<-served
	return got
}

func TestAnotherInstanceGoesOnAtTheVeryByte(t *testing.T) {
	safety.Test(t, safety.Bytes)
	_, root := blob(t, 5000)
	first, second := "GET /blob HTTP/1.1\r\nHost: x\r\n\r\n", "GET /blob HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	plain := instance(t, root, t.TempDir(), scaffold.Identity{}, nil)
	whole := talk(t, plain, first+second, -1)
	for at := 0; at <= len(whole); at += 97 {
		sessions := t.TempDir()
		stable := netip.MustParseAddr("fd5d::1")
		sent := first + second
		if at < len(whole)/2 {
			sent = first // a client asks on once it has the first answer
		}
		taken := len(sent) - at%8 // an acknowledgement may be lost: then what was read comes again
		a := instance(t, root, sessions, scaffold.Identity{Stable: stable}, nil)
		b := instance(t, root, sessions, scaffold.Identity{Stable: stable, Resumed: true, Sent: uint64(at), Received: uint64(taken)}, nil)
		got := talk(t, a, sent, at)
		got = append(got, talk(t, b, (first + second)[taken:], -1)...)
		if at > 0 && !sameBut(got, whole) {
			t.Fatalf("failed over at byte %d: %d bytes, want the %d of a single answer", at, len(got), len(whole))
		}
	}
}

// sameBut compares but for the clock.
func sameBut(a, b []byte) bool { return bytes.Equal(noDate(a), noDate(b)) }

func noDate(b []byte) []byte {
	b = bytes.Clone(b)
	for i := 0; ; {
		j := bytes.Index(b[i:], []byte("\r\nDate: "))
		if j < 0 {
			return b
		}
		i += j + 8
		copy(b[i:i+29], bytes.Repeat([]byte{'x'}, 29))
	}
}

func TestWhatTheRecordDoesNotKnowIsReset(t *testing.T) {
	_, root := blob(t, 5000)
	for name, id := range map[string]scaffold.Identity{
		"no record":         {Stable: netip.MustParseAddr("fd5d::2"), Resumed: true, Sent: 100, Received: 30},
		"beyond the answer": {Stable: netip.MustParseAddr("fd5d::1"), Resumed: true, Sent: 1 << 20, Received: 30},
	} {
		sessions := t.TempDir()
		talk(t, instance(t, root, sessions, scaffold.Identity{Stable: netip.MustParseAddr("fd5d::1")}, nil), "GET /blob HTTP/1.1\r\nHost: x\r\n\r\n", 100)
		if got := talk(t, instance(t, root, sessions, id, nil), "", -1); len(got) != 0 {
			t.Errorf("%s: the client got %d bytes", name, len(got))
		}
	}
}
