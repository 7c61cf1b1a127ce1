package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// http2 is two nginx that speak HTTP/2 without TLS.
func http2(t *testing.T, blob []byte) *service {
	t.Helper()
	s := newService(t, "h2")
	for i, host := range []string{"s1", "s2"} {
		listen, start := s.at(80), s.own
		if i == 1 {
			listen, start = "[::]:80", s.wild
		}
		dir := nginxDir(t, host, listen+" http2", blob)
		start(host, dir, "nginx", "-c", dir+"/nginx.conf", "-e", dir+"/error.log")
	}
	s.serving("tcp", 80)
	return s
}

func TestHTTP2(t *testing.T) {
	blob := random(4 << 20)
	s := http2(t, blob)
	got := filepath.Join(place(t), "blob")
	client(t, "sh", "-c", `nghttp "$1" >"$2"`, "sh", s.url("/blob"), got)
	sameFile(t, got, blob)
	out := client(t, "h2load", "-n", "2000", "-c", "10", "-m", "20", s.url("/"))
	if !strings.Contains(out, "2000 succeeded, 0 failed, 0 errored") {
		t.Errorf("h2load:\n%s", tail(out))
	}
	both(t, "requests in the access logs", hits(t, s, `"GET / HTTP/2.0" 200`))
}

// nghttpd is HTTP/2 by the library's own server, which has its wildcard taken for it.
func TestNghttpd(t *testing.T) {
	s := newService(t, "nghttpd")
	dir := place(t)
	www := filepath.Join(dir, "www")
	if err := os.Mkdir(www, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, www, "index.html", "served by s1\n")
	s.wild("s1", dir, "nghttpd", "--no-tls", "-a", "::", "-d", www, "8080")
	s.serving("tcp", 8080)
	if out := client(t, "nghttp", fmt.Sprintf("http://%s:8080/", s.host)); out != "served by s1\n" {
		t.Errorf("nghttp: %q", out)
	}
}
