package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"connectrpc.com/connect"
)

func TestWhyACallFailedIsSaidPlainly(t *testing.T) {
	op := func(op string, err error) error {
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("Post %q: %w", "http://scaffold/x", &net.OpError{Op: op, Net: "tcp", Err: err}))
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), "nothing listens there"},
		{op("dial", os.NewSyscallError("connect", syscall.ENOENT)), "nothing listens there"},
		{op("dial", os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "no route leads there"},
		{op("dial", os.ErrDeadlineExceeded), "nothing came back from that address in time"},
		{op("read", os.NewSyscallError("read", syscall.ECONNRESET)), "the connection broke off"},
		{connect.NewError(connect.CodeCanceled, fmt.Errorf("Post: %w", io.ErrUnexpectedEOF)), "the connection broke off"},
		{connect.NewError(connect.CodeDeadlineExceeded, context.DeadlineExceeded), "it has not answered in time"},
		{context.DeadlineExceeded, "it has not answered in time"},
		{connect.NewError(connect.CodeInternal, errors.New("the store is broken")), "the store is broken"},
		{errors.New("anything else"), "anything else"},
	} {
		if got := Plainly(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	if _, err := http.Get("http://[::1]:1/"); err == nil || strings.Contains(Plainly(err), "dial") { //nolint:bodyclose // a real one; nobody answers
		t.Errorf("%v: %q", err, Plainly(err))
	}
}
