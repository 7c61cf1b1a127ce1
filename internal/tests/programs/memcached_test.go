package programs

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

const memcachedPort = 11211

func (s *service) memcached(host string, wild bool) {
	start, addr := s.own, s.addr.String()
	if wild {
		start, addr = s.wild, "::"
	}
	start(host, place(s.t), "memcached", "-u", "root", "-l", addr, "-p", strconv.Itoa(memcachedPort), "-U", strconv.Itoa(memcachedPort))
}

// Two caches, each the owner of its part of the keys, as two names: the client's own hash picks the
// name. Values go in and out by different connections, so a part has one instance.
func TestMemcachedTCP(t *testing.T) {
	a, b := newService(t, "part-a"), newService(t, "part-b")
	a.memcached("s1", false)
	b.memcached("s2", true)
	a.serving("tcp", memcachedPort)
	b.serving("tcp", memcachedPort)
	servers := "--servers=" + a.host + "," + b.host

	dir, blob := place(t), random(900_000)
	var files []string
	for i := range 8 {
		files = append(files, put(t, dir, "key"+strconv.Itoa(i), string(blob[i:])))
	}
	client(t, append([]string{"memccp", servers}, files...)...)
	for i, f := range files {
		got := filepath.Join(dir, "got")
		client(t, "memccat", servers, "--file="+got, filepath.Base(f))
		sameFile(t, got, blob[i:])
	}
	if na, nb := items(t, a), items(t, b); na+nb != len(files) || na == 0 || nb == 0 {
		t.Errorf("the parts hold %d and %d of %d values, want some in each", na, nb, len(files))
	}
}

// Several instances behind one name, where each connection sets what it gets.
func TestMemcachedProtocol(t *testing.T) {
	s := newService(t, "cache")
	s.memcached("s1", false)
	s.memcached("s2", true)
	s.serving("tcp", memcachedPort)
	out := client(t, "memccapable", "-h", s.host, "-p", strconv.Itoa(memcachedPort))
	if !strings.Contains(out, "All tests passed") {
		t.Errorf("memccapable:\n%s", tail(out))
	}
}

// The memcached protocol over UDP: sets without an answer by the packaged client, then gets whose
// answer takes several datagrams.
func TestMemcachedUDP(t *testing.T) {
	s := newService(t, "cache")
	s.memcached("s1", true)
	s.serving("udp", memcachedPort)
	s.serving("tcp", memcachedPort)
	dir, value := place(t), letters(5000)
	var files []string
	for i := range 12 { // up to three fragments each
		files = append(files, put(t, dir, "set"+strconv.Itoa(i), value[:300*(i+1)]))
	}
	client(t, append([]string{"memccp", "--udp", "--servers=" + s.host}, files...)...)
	nstest.Wait(t, "memcstat, `scaffold flow ls` on c1 and s1", func() error {
		if n := items(t, s); n != len(files) {
			return fmt.Errorf("memcached holds %d values of %d that were set by datagrams", n, len(files))
		}
		return nil
	})
	for i, f := range files {
		got := filepath.Join(dir, "got")
		client(t, "memccat", "--servers="+s.host, "--file="+got, filepath.Base(f))
		sameFile(t, got, []byte(value[:300*(i+1)]))
	}

	client(t, "memccp", "--servers="+s.host, put(t, dir, "key", value))
	out := filepath.Join(dir, "datagrams")
	client(t, "bash", "-c", udpGet, "bash", s.host, strconv.Itoa(memcachedPort), out)
	same(t, "value by UDP", []byte(values(t, out)), []byte(value))
}

// udpGet asks for "key" and keeps the four datagrams of the answer, each padded to 1500 bytes.
const udpGet = `exec 3<>/dev/udp/$1/$2
printf '\0\7\0\0\0\1\0\0get key\r\n' >&3
dd bs=1500 count=4 conv=sync <&3 >"$3"`

// values puts the datagrams in order (8 bytes of header: request, number, total, reserved) and
// returns the value that they hold.
func values(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parts := make([]string, len(b)/1500)
	for i := range parts {
		d := b[i*1500 : (i+1)*1500]
		n, total := int(binary.BigEndian.Uint16(d[2:])), int(binary.BigEndian.Uint16(d[4:]))
		if total != len(parts) || n >= total {
			t.Fatalf("datagram %d says it is number %d of %d, want %d: %q", i, n, total, len(parts), d[:80])
		}
		parts[n] = strings.TrimRight(string(d[8:]), "\x00")
	}
	m := regexp.MustCompile(`(?s)^VALUE key \d+ \d+\r\n(.*)\r\nEND\r\n$`).FindStringSubmatch(strings.Join(parts, ""))
	if m == nil {
		t.Fatalf("no value in the answer: %q", tail(strings.Join(parts, "")))
	}
	return m[1]
}

// items is the number of values in the one cache behind a name, by its own account.
func items(t *testing.T, s *service) int {
	t.Helper()
	out := client(t, "memcstat", "--servers="+s.host)
	m := regexp.MustCompile(`curr_items: (\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("memcstat: no curr_items in\n%s", tail(out))
	}
	n, _ := strconv.Atoi(m[1])
	return n
}
