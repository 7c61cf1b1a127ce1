package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/api"
)

func TestEndpointsAreReadAsPeopleWriteThem(t *testing.T) {
	for in, want := range map[string]string{
		"unix:/run/a.sock":                 "unix:/run/a.sock",
		"unix:///run/a.sock":               "unix:/run/a.sock",
		"http://10.0.0.1:80":               "http://10.0.0.1:80",
		"http://[fe80::1%eth0]:80/":        "http://[fe80::1%eth0]:80",
		"http://[fe80::1%25eth0]:80":       "http://[fe80::1%eth0]:80",
		"[::]:23728":                       "http://[::]:23728",
		"http://localhost:23728":           "http://localhost:23728",
		"192.0.2.1":                        "http://192.0.2.1:23728",
		"2001:db8::1":                      "http://[2001:db8::1]:23728",
		"https://[2001:db8::1]":            "https://[2001:db8::1]:23728",
		"https://net1/":                    "https://net1:23728",
		"unix:":                            "",
		"":                                 "",
		"localhost":                        "",
		"ftp://a:1":                        "",
		"http://[::1":                      "",
		"http://::1]":                      "",
		"http://127.0.0.1:99999":           "",
		"http://127.0.0.1:-1":              "",
		"http://127.0.0.1:8O":              "",
		"http://127.0.0.1:http":            "http://127.0.0.1:http",
		"unix:" + strings.Repeat("x", 108): "",
	} {
		e, err := api.ParseEndpoint(in)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q: got %v, want an error", in, e)
		case want != "" && (err != nil || e.String() != want):
			t.Errorf("%q: got %v, %v, want %s", in, e, err, want)
		}
	}
}

func TestAnotherSchemeIsToldWhatIsMeant(t *testing.T) {
	if _, err := api.ParseEndpoint("ftp://x"); err == nil || !strings.Contains(err.Error(), "https://host:port") {
		t.Errorf("got %v, want what an endpoint is", err)
	}
}

func TestBothKindsOfEndpointSpeakHTTP2(t *testing.T) {
	for _, endpoint := range []string{"unix:" + filepath.Join(t.TempDir(), "s"), "http://127.0.0.1:0"} {
		l, err := api.Listen(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if l.Addr().Network() == "tcp" {
			endpoint = "http://" + l.Addr().String()
		}
		stop, done := serve(t, l)
		client, base, err := api.Dial(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Get(base + "/x")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if string(body) != "HTTP/2.0 /x" {
			t.Errorf("%s answered %q, want HTTP/2.0 /x", endpoint, body)
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("%s: Serve returned %v after a cancel", endpoint, err)
		}
	}
}

func TestAStaleSocketIsReplacedALiveOneIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	live, err := api.Listen("unix:" + path)
	if err != nil {
		t.Fatalf("a socket that nobody serves is in the way: %v", err)
	}
	defer live.Close()
	if _, err := api.Listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "another daemon") {
		t.Errorf("a second Listen on a live socket: %v, want a refusal that says why", err)
	}
}

func TestAFileInThePlaceOfASocketIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Listen("unix:" + path); err == nil {
		t.Error("Listen took the place of a file")
	}
	if got, _ := os.ReadFile(path); string(got) != "mine" {
		t.Errorf("the file now holds %q", got)
	}
}

func serve(t *testing.T, l net.Listener) (stop func(), done chan error) {
	ctx, cancel := context.WithCancel(t.Context())
	done = make(chan error, 1)
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto, " ", r.URL.Path) })
	go func() { done <- api.Serve(ctx, hello, l) }()
	return cancel, done
}
