package agent

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// start serves on a free loopback port and returns its address.
func start(t *testing.T, id string) string {
	t.Helper()
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	ready := make(chan struct{})
	go func() { done <- Serve(ctx, addr, id, false, lineWriter{ready}) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("Serve(%s): %v", addr, err)
	}
	t.Cleanup(func() { cancel(); <-done })
	return addr
}

// lineWriter closes its channel at the first line.
type lineWriter struct{ ready chan struct{} }

func (w lineWriter) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("listening ")) {
		close(w.ready)
	}
	return len(b), nil
}

func TestEachQuestionIsAnsweredByTheInstance(t *testing.T) {
	addr := start(t, "s1")
	for _, network := range []string{"tcp6", "udp6"} {
		r, err := RequestResponse(t.Context(), network, addr, 20*time.Millisecond)
		if err != nil || r.Ops == 0 || r.ByID["s1"] != int(r.Ops) {
			t.Errorf("%s: %+v, %v", network, r, err)
		}
		if got := ConnectLoop(t.Context(), network, addr, 3, 0, nil); got.Ops != 3 || got.ByID["s1"] != 3 {
			t.Errorf("%s connect loop: %+v", network, got)
		}
	}
	if r, err := Stream(t.Context(), addr, 10*time.Millisecond); err != nil || r.Bytes == 0 {
		t.Errorf("stream: %+v, %v", r, err)
	}
}

func TestAFailedRequestSaysWhy(t *testing.T) {
	q := Ask(t.Context(), "tcp6", "[::1]:1")
	if q.Err == "" || !strings.Contains(q.Err, "refused") || q.End < q.Start {
		t.Errorf("%+v", q)
	}
}
