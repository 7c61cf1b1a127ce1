package programs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The TFTP server answers each request from a new socket on another port: the flow of the first
// datagram has to carry it. With a wildcard it answers its very first request from whichever address the
// kernel picks, on any host with several: it asks for the request's destination only afterwards.
func TestTFTP(t *testing.T) {
	blob := random(4<<20 + 17)
	s := newService(t, "tftp")
	one, two := tftpDir(t, blob), tftpDir(t, blob)
	s.own("s1", one, "in.tftpd", "-L", "-v", "-c", "-p", "-u", "root", "-a", s.at(69), "-s", one)
	s.own("s2", two, "in.tftpd", "-L", "-v", "-c", "-p", "-u", "root", "-a", s.at(69), "-s", two)
	s.serving("udp", 69)

	dir := place(t)
	got := filepath.Join(dir, "got")
	client(t, "tftp", "-6", "-m", "binary", s.host, "-c", "get", "blob", got)
	sameFile(t, got, blob)

	client(t, "tftp", "-6", "-m", "binary", s.host, "-c", "put", put(t, dir, "up", string(blob)), "up")
	arrived := 0
	for _, d := range []string{one, two} {
		if b, err := os.ReadFile(filepath.Join(d, "up")); err == nil && bytes.Equal(b, blob) {
			arrived++
		}
	}
	if arrived != 1 {
		t.Errorf("%d instances hold the file that was put, want 1", arrived)
	}

	// Two ports on two hosts, asked from one local port: each answers, and is written to where it answers from.
	boot := newService(t, "boot")
	for _, x := range []struct {
		host, dir string
		port      int
	}{{"s1", one, 69}, {"s2", two, 1069}} {
		put(t, x.dir, "who", x.host)
		boot.own(x.host, x.dir, "in.tftpd", "-L", "-v", "-u", "root", "-a", boot.at(x.port), "-s", x.dir)
		s.net.serving(t, boot.name, "udp", x.port, 1)
	}
	for range 2 {
		for port, want := range map[int]string{69: "s1", 1069: "s2"} {
			url := fmt.Sprintf("tftp://%s:%d/who", boot.host, port)
			if got := client(t, "curl", "-sS", "--local-port", "5069", "--max-time", "10", url); got != want {
				t.Errorf("%s: %q, want %q", url, got, want)
			}
		}
	}
}

// tftpDir is the directory of one server: it changes root into it.
func tftpDir(t *testing.T, blob []byte) string {
	t.Helper()
	dir := place(t)
	put(t, dir, "blob", string(blob))
	return dir
}
