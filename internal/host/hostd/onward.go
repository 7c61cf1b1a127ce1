package hostd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
)

// leaderWait is how long a question for the controller waits while none leads: another one does 5 s after the one
// before was killed, and this host has joined it a moment later. Commands wait for 10 s.
const leaderWait = 8 * time.Second

// lookAgain is how often who waits looks whether the host has joined.
const lookAgain = 50 * time.Millisecond

// mostKept is what of a question is kept so that it can be asked again.
const mostKept = 1 << 20

// adminProxy hands what operators ask of the network to the controller, over the same way that this host joined by.
func (d *daemon) adminProxy() http.Handler {
	errs := connect.NewErrorWriter()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "scaffold"
			r.Out.Header.Del(api.LocalUser)
			if who, ok := api.CallerOf(r.In.Context()); ok {
				r.Out.Header.Set(api.LocalUser, who.Name()) // for the network's history
			}
		},
		Transport:     roundTripper(d.control.onward),
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			errs.Write(w, r, connect.NewError(connect.CodeUnavailable, err)) //nolint:errcheck // the caller is gone
		},
	}
	return proxy
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// onward sends a question to the controller that leads. While one takes over from another it waits, and asks again what
// did not get out, or what may be asked twice.
func (c *control) onward(r *http.Request) (*http.Response, error) {
	limit := time.Now().Add(leaderWait)
	q, err := newInquiry(r)
	if err != nil {
		return nil, err
	}
	var doubt error // of a controller that may have done it
	for {
		client, once, err := c.leads(r.Context(), limit)
		if doubt != nil && (err != nil || !once) { // this one would do it again
			return nil, doubt
		}
		if err != nil {
			return nil, err
		}
		resp, again, err := q.ask(client)
		switch {
		case err == nil:
			return resp, nil
		case r.Context().Err() != nil:
			return nil, r.Context().Err()
		case !again:
			doubt = fmt.Errorf("the connection to the controller was lost before its answer came, and it is not known whether it did this: look before you try again (%w)", plainly(err))
			if !q.numbered || !once || time.Now().After(limit) {
				return nil, doubt
			}
		case time.Now().After(limit):
			return nil, c.nobody(plainly(err))
		}
		c.pause(r.Context())
	}
}

// leads is a client of a controller that this host has joined, or that will say itself what is wrong. once says that it
// knows orders that come again.
func (c *control) leads(ctx context.Context, limit time.Time) (client *http.Client, once bool, err error) {
	for {
		c.mu.Lock()
		client, here := c.client, c.session || c.answered || !c.reached
		once = c.session && c.once
		c.mu.Unlock()
		switch {
		case client != nil && here:
			return client, once, nil
		case here:
			return nil, false, errors.New("this host has found no way to the controller yet: `scaffold host status` says what it looks for")
		case time.Now().After(limit):
			return nil, false, c.nobody(nil)
		}
		c.pause(ctx)
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
	}
}

func (c *control) pause(ctx context.Context) {
	select {
	case <-time.After(lookAgain):
	case <-ctx.Done():
	}
}

// nobody says that no controller answered all the time, and what the last attempt at one came to.
func (c *control) nobody(err error) error {
	_, _, endpoint, trouble := c.state()
	if err != nil {
		trouble = err.Error()
	}
	where := "this host has no way to a controller now"
	if endpoint != "" {
		where = "the last one tried is at " + plainZone(endpoint)
	}
	if trouble != "" {
		where += " (" + trouble + ")"
	}
	return fmt.Errorf("no controller took this for %v: %s", leaderWait, where)
}

// plainZone is an endpoint with the name of its interface, as people know it, where it has the number as URLs have it.
func plainZone(endpoint string) string {
	before, zone, ok := strings.Cut(endpoint, "%25")
	number, after, _ := strings.Cut(zone, "]")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return endpoint
	}
	if dev, err := net.InterfaceByIndex(n); err == nil {
		number = dev.Name
	}
	return before + "%" + number + "]" + after
}

// plainly leaves out what a connection says that we closed ourselves.
func plainly(err error) error {
	if strings.Contains(err.Error(), "use of closed network connection") {
		return errors.New("the connection ended")
	}
	return err
}

// An inquiry is a request that may have to be sent more than once.
type inquiry struct {
	r    *http.Request
	kept []byte // the whole body, where it may be asked twice
	same bool   // it may, or
	// numbered says that a controller that knows such orders does not carry it out twice
	numbered bool
}

func newInquiry(r *http.Request) (*inquiry, error) {
	q := &inquiry{r: r}
	asks, ordered := api.Asks(r.URL.Path), api.OrderOf(r.URL.Path, r.Header) != ""
	if !asks && !ordered || r.Body == nil || r.ContentLength > mostKept {
		return q, nil
	}
	var err error
	if q.kept, err = io.ReadAll(io.LimitReader(r.Body, mostKept+1)); err != nil {
		return nil, err
	}
	whole := len(q.kept) <= mostKept
	if q.same, q.numbered = whole && asks, whole && ordered; !whole {
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(q.kept), r.Body))
	}
	return q, nil
}

// ask sends it; again says that it may be sent anew.
func (q *inquiry) ask(client *http.Client) (resp *http.Response, again bool, err error) {
	r := q.r.Clone(q.r.Context())
	body := &untouched{}
	switch {
	case q.same:
		r.Body = io.NopCloser(bytes.NewReader(q.kept))
	case q.numbered:
		body.Reader = bytes.NewReader(q.kept)
		r.Body = body
	case q.r.Body != nil:
		body.Reader = q.r.Body
		r.Body = body
	}
	resp, err = client.Transport.RoundTrip(r)
	if err == nil && (q.same || q.numbered) {
		err = api.Whole(resp)
	}
	if err != nil {
		return nil, q.same || body.seal(), err
	}
	return resp, false, nil
}

// untouched is a body of which it is known whether anything of it got out.
type untouched struct {
	io.Reader
	read, sealed atomic.Bool
}

// Read is an io.Reader's. A transport that gave up may read on for a moment: it gets nothing then.
func (u *untouched) Read(b []byte) (int, error) {
	u.read.Store(true)
	if u.sealed.Load() { // looked at last: who has sealed it sees the reading, or the reading sees the seal
		return 0, net.ErrClosed
	}
	return u.Reader.Read(b)
}

// Close leaves the body open for another attempt; the server closes it.
func (u *untouched) Close() error { return nil }

// seal ends the reading, and reports whether nothing was read.
func (u *untouched) seal() bool {
	u.sealed.Store(true)
	return !u.read.Load()
}
