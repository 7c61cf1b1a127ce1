package programs

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// both fails unless each of the two hosts served some of what was counted.
func both(t *testing.T, what string, n map[string]int) {
	t.Helper()
	if n["s1"] == 0 || n["s2"] == 0 {
		t.Errorf("%s: %v, want some at s1 and some at s2", what, n)
	}
}

func TestCurl(t *testing.T) {
	blob := random(8 << 20)
	s := web(t, blob)
	got := filepath.Join(place(t), "blob")
	client(t, "curl", "-sS", "--fail", "-o", got, s.url("/blob"))
	sameFile(t, got, blob)

	// One process, one connection a request: each is a flow of its own.
	urls := make([]string, 40)
	for i := range urls {
		urls[i] = s.url("/")
	}
	out := client(t, append([]string{"curl", "-sS", "--fail", "-H", "Connection: close"}, urls...)...)
	both(t, "pages seen by curl", map[string]int{
		"s1": strings.Count(out, "served by s1"), "s2": strings.Count(out, "served by s2"),
	})
	if n := strings.Count(out, "served by"); n != len(urls) {
		t.Errorf("curl got %d pages of %d:\n%s", n, len(urls), tail(out))
	}
}

func TestWget(t *testing.T) {
	blob := random(8 << 20)
	s := web(t, blob)
	dir := place(t)
	for i := range 4 {
		got := filepath.Join(dir, "blob"+strconv.Itoa(i))
		client(t, "wget", "--no-config", "-nv", "--tries=1", "-O", got, s.url("/blob"))
		sameFile(t, got, blob)
	}
}

func TestElinks(t *testing.T) {
	s := web(t, nil)
	out := client(t, "elinks", "-no-home", "1", "-dump", s.url("/"))
	if !regexp.MustCompile(`(?s)Instance.*served by s[12]`).MatchString(out) {
		t.Errorf("elinks shows:\n%s", tail(out))
	}
}

func TestApacheBench(t *testing.T) {
	s := web(t, random(1500))
	const n = 2000
	for _, mode := range [][]string{{"-c", "20"}, {"-c", "20", "-k"}} {
		out := client(t, append(append([]string{"ab", "-q", "-n", strconv.Itoa(n)}, mode...), s.url("/blob"))...)
		for _, want := range []string{`Complete requests:\s+2000\n`, `Failed requests:\s+0\n`, `HTML transferred:\s+3000000 bytes`} {
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("ab %v: no %q in\n%s", mode, want, tail(out))
			}
		}
	}
	seen := hits(t, s, `"GET /blob HTTP/1.0" 200`)
	both(t, "requests in the access logs", seen)
	if sum := seen["s1"] + seen["s2"]; sum != 2*n {
		t.Errorf("the access logs hold %v = %d requests, ab made %d", seen, sum, 2*n)
	}
}
