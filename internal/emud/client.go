package emud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"scaffold.dev/scaffold/emu"
)

// A Client speaks to an engine.
type Client struct {
	socket string
	http   *http.Client
}

// Dial returns a client of the engine that listens on a Unix socket; nothing is asked yet.
func Dial(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Client{socket, &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// ErrGone is returned where no engine answers.
var ErrGone = errors.New("the engine does not answer")

// NotFoundError says that the engine has nothing of that name.
type NotFoundError struct{ Text string }

func (e *NotFoundError) Error() string { return e.Text }

// do asks a question that takes no longer than askTime.
func (c *Client) do(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = bytes.NewReader(b)
	}
	return c.stream(ctx, method, path, text, into)
}

// stream asks a question that takes as long as it takes.
func (c *Client) stream(ctx context.Context, method, path string, body io.Reader, into any) error {
	answer, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(answer).Decode(into); err != nil {
		return fmt.Errorf("%w: its answer to %s %s: %w", ErrGone, method, path, err)
	}
	return nil
}

// open asks a question and returns the body of the answer.
func (c *Client) open(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, body)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w on %s: %w", ErrGone, c.socket, err)
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	defer res.Body.Close()
	var p Problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
		p.Error = fmt.Sprintf("%s %s: %s", method, path, res.Status)
	}
	if res.StatusCode == http.StatusNotFound {
		return nil, &NotFoundError{p.Error}
	}
	return nil, errors.New(p.Error)
}

// Ready is an error until the engine runs and answers.
func (c *Client) Ready(ctx context.Context) error {
	var names string
	return c.do(ctx, "GET", "/v1/programs", nil, &names)
}

// Links are the states of all links.
func (c *Client) Links(ctx context.Context) (all []LinkState, err error) {
	err = c.do(ctx, "GET", "/v1/links", nil, &all)
	return all, err
}

// SetParams changes a link for the packets to come.
func (c *Client) SetParams(ctx context.Context, link int, p [2]emu.Params) (s LinkState, err error) {
	err = c.do(ctx, "PUT", fmt.Sprintf("/v1/links/%d/params", link), p, &s)
	return s, err
}

// Routers are the states of all routers.
func (c *Client) Routers(ctx context.Context) (all []RouterState, err error) {
	err = c.do(ctx, "GET", "/v1/routers", nil, &all)
	return all, err
}

func routerPath(name string, more ...string) string {
	path := "/v1/routers/" + url.PathEscape(name)
	for _, m := range more {
		path += "/" + url.PathEscape(m)
	}
	return path
}

// Router is the state of one.
func (c *Client) Router(ctx context.Context, name string) (s RouterState, err error) {
	err = c.do(ctx, "GET", routerPath(name), nil, &s)
	return s, err
}

// Handlers are what can be read or written of a router.
func (c *Client) Handlers(ctx context.Context, router string) (all []HandlerState, err error) {
	err = c.do(ctx, "GET", routerPath(router, "handlers"), nil, &all)
	return all, err
}

// Get reads a handler of a router.
func (c *Client) Get(ctx context.Context, router, handler string) (value string, err error) {
	err = c.do(ctx, "GET", routerPath(router, "handlers", handler), nil, &value)
	return value, err
}

// Set writes a handler of a router.
func (c *Client) Set(ctx context.Context, router, handler, value string) error {
	return c.do(ctx, "PUT", routerPath(router, "handlers", handler), value, nil)
}

// Swap gives a router another program.
func (c *Client) Swap(ctx context.Context, router string, s Swap) error {
	return c.do(ctx, "PUT", routerPath(router, "program"), s, nil)
}

// Move puts a router on another of the engine's threads.
func (c *Client) Move(ctx context.Context, router string, shard int) error {
	return c.do(ctx, "PUT", routerPath(router, "shard"), shard, nil)
}

// Change carries out faults and repairs, all at once.
func (c *Client) Change(ctx context.Context, changes ...Fault) (r Routes, err error) {
	err = c.do(ctx, "POST", "/v1/faults", Faults{changes}, &r)
	return r, err
}

// Routes say whether computed routes have followed the faults.
func (c *Client) Routes(ctx context.Context) (r Routes, err error) {
	err = c.do(ctx, "GET", "/v1/routes", nil, &r)
	return r, err
}

// Shutdown ends the engine.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.do(ctx, "POST", "/v1/shutdown", nil, nil)
}
