package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/backoff"
)

// A check that fails is tried again soon, since a starting program wants its traffic; one that passes is
// repeated to notice when it does no longer.
const (
	checkLimit = 2 * time.Second
	checkFirst = 10 * time.Millisecond
	checkLast  = 500 * time.Millisecond
	checkAgain = time.Second
)

// A Namespace is where a program is.
type Namespace interface {
	Do(f func() error) error // on a thread in it
	Join() error             // of the calling thread
}

// A Check asks one program of this host whether it serves. It holds no state of the loop.
type Check struct {
	Spec string         // of the service's policy: tcp, http:/path, exec:NAME
	To   netip.AddrPort // service address and port
	From netip.Addr     // the host's or guest's identity: the answer finds its way back inside
	In   Namespace      // where the program is

	Mark   int    // of packets that stay in the host
	Device string // of the VRF in which it is; "" elsewhere

	Allowed Allowed  // commands
	Servant *Servant // as whom they run; nil: as nobody
}

// Repeat runs the check until ctx ends and tells each result: "" or why not.
func (c Check) Repeat(ctx context.Context, tell func(reason string)) {
	soon := backoff.Backoff{First: checkFirst, Last: checkLast}
	for ctx.Err() == nil {
		next, err := checkAgain, c.run(ctx)
		if err == nil {
			tell("")
			soon.Reset()
		} else {
			tell("ready check: " + err.Error())
			next = soon.Next()
		}
		select {
		case <-time.After(next):
		case <-ctx.Done():
		}
	}
}

// run is one try; a check that hangs ends at checkLimit.
func (c Check) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	kind, arg, _ := strings.Cut(c.Spec, ":")
	switch kind {
	case "tcp":
		conn, err := c.dial(ctx, "tcp6", "")
		if err != nil {
			return tersely(err)
		}
		return conn.Close()
	case "http":
		return c.http(ctx, arg)
	case "exec":
		return c.exec(ctx, arg)
	}
	return fmt.Errorf("%q is no check that this host knows: want tcp, http:/path or exec:NAME", c.Spec)
}

// tersely leaves out addresses that change with every try: a reason that stays the same is told once.
func tersely(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err
	}
	return err
}

// dial connects inside the host: the mark chooses the table in which service addresses are local.
func (c Check) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d := net.Dialer{
		LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.From, 0)),
		Control: func(_, _ string, raw syscall.RawConn) (err error) {
			if fail := raw.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, c.Mark)
				if c.Device != "" {
					err = errors.Join(err, unix.BindToDevice(int(fd), c.Device))
				}
			}); fail != nil {
				return fail
			}
			return err
		},
	}
	var conn net.Conn
	err := c.In.Do(func() (err error) {
		conn, err = d.DialContext(ctx, "tcp6", c.To.String())
		return err
	})
	return conn, err
}

func (c Check) http(ctx context.Context, path string) error {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	transport := &http.Transport{DialContext: c.dial, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.To.String()+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "scaffold-ready")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return tersely(err)
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, 1<<16) //nolint:errcheck // its status is what counts
	if resp.StatusCode >= 400 {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return nil
}
