package hostd

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

// How long between attempts to reach the controller.
const (
	retryLast    = time.Second
	retryStandby = 200 * time.Millisecond // a router that leads to one that does not lead will soon have found the one that does
	retryFinal   = 10 * time.Second       // what it said will not change by itself
)

// A hostSession is the host's stream to the controller that has joined.
type hostSession = member.Session[*apiv1.HostReport]

// A control is the stream to the controller. Its goroutine dials, joins and receives; the loop sends
// through out. What mu guards is read by API handlers as well.
type control struct {
	d   *daemon
	out *hostSession // nil while there is none; the loop's own

	dialled *trust.Member // as whom; the loop's own

	mu       sync.Mutex
	endpoint string          // where the controller is reached; empty: nowhere now
	changed  chan struct{}   // closed when endpoint is replaced
	client   *http.Client    // to the endpoint
	conns    *connections    // of client
	reached  bool            // a session joined at least once
	session  bool            // one is joined now
	trouble  string          // why not
	once     bool            // the controller of the session, or of the last one, knows orders that come again
	answered bool            // somebody who leads said why not
	said     member.Said     // the kinds of trouble that were logged
	ended    <-chan struct{} // closed when the session ended
	leaving  bool            // no session after this one
}

func newControl(d *daemon) *control { return &control{d: d, changed: make(chan struct{})} }

// Dial makes the next session go by the endpoint and ends the one that runs; runs in the loop.
func (c *control) Dial(endpoint string) {
	conns := newConnections()
	c.dialled, _ = c.d.credentials.Member()
	// Somewhere else to go to: to another controller, or past a router whose daemon is stopped and whose kernel takes what
	// nobody reads.
	elsewhere := c.d.controllers != nil && c.d.controllers.Several() || len(c.d.uplinks.All()) > 1
	client, err := c.d.credentials.Client(endpoint, conns.dial, elsewhere)
	if err != nil {
		c.d.log.Error("nothing is said to the controller in the clear instead", "error", err)
		client = failing(err)
	}
	c.replace(endpoint, client, conns)
}

// failing is a client that says what is wrong.
func failing(err error) *http.Client {
	return &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, err })}
}

// admitted dials anew where a credential has come since: somebody has run `scaffold join`.
func (c *control) admitted(endpoint string) {
	had := c.dialled
	if m, err := c.d.credentials.Member(); err == nil && m != had && c.GoesBy(endpoint) {
		c.Dial(endpoint)
	}
}

// again dials anew: the host has another key.
func (c *control) again() {
	if endpoint, _, _ := c.current(); endpoint != "" {
		c.Dial(endpoint)
	}
}

// Drop ends the session: there is no way to the controller.
func (c *control) Drop() {
	if !c.GoesBy("") {
		c.replace("", nil, nil)
	}
}

func (c *control) replace(endpoint string, client *http.Client, conns *connections) {
	c.out = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns.close()
	c.endpoint, c.client, c.conns = endpoint, client, conns
	close(c.changed)
	c.changed = make(chan struct{})
}

// GoesBy reports whether the session goes by the endpoint, or will.
func (c *control) GoesBy(endpoint string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoint == endpoint
}

func (c *control) current() (string, *http.Client, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoint, c.client, c.changed
}

// run keeps a session until ctx ends.
func (c *control) run(ctx context.Context) {
	patience := member.Patience{Last: retryLast, Standby: retryStandby, Final: retryFinal}
	as := newAsHost(c)
	for ctx.Err() == nil {
		endpoint, client, changed := c.current()
		if c.isLeaving() {
			return
		}
		if endpoint == "" {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		joined, err := as.attempt(ctx, changed, endpoint, client)
		if ctx.Err() != nil || c.isLeaving() {
			return
		}
		c.report(endpoint, err)
		if fresh := !joined && c.d.credentials.Reload(); fresh || errors.Is(err, member.ErrFinal) {
			c.d.call(ctx, func() { c.admitted(endpoint) })
		}
		next, soon := c.next(endpoint, joined, err)
		if !member.Pause(ctx, patience.Next(joined, err, soon), changed) {
			continue
		}
		switch {
		case next != endpoint:
			c.d.call(ctx, func() { c.d.joining.GoTo(next) })
		case !joined && !errors.Is(err, member.ErrRefused) && !errors.Is(err, member.ErrFinal) && !errors.Is(err, member.ErrStandby):
			c.d.call(ctx, func() { c.d.joining.TryAnother(endpoint) })
		}
	}
}

// next is the controller to go to after an attempt at one; soon: it was not tried yet in this round.
func (c *control) next(endpoint string, joined bool, err error) (next string, soon bool) {
	all := c.d.controllers
	if all == nil || errors.Is(err, member.ErrFinal) {
		return endpoint, false
	}
	if joined {
		all.Lost(endpoint)
	}
	next, tired := all.Next()
	return next, !tired
}

// report logs why there is no session, once per absence or reason of a refusal.
func (c *control) report(endpoint string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endpoint != endpoint {
		return // given up by ourselves
	}
	c.trouble, c.answered = api.Plainly(err), errors.Is(err, member.ErrRefused) || errors.Is(err, member.ErrFinal)
	kind, what := endpoint, "controller unreachable; flows go on, trying again"
	if c.d.controllers != nil {
		kind = "unreachable" // whichever it is of several
	}
	if member.Outside(err) {
		kind, what = err.Error(), "not in the network; trying again"
		if errors.Is(err, member.ErrFinal) {
			what = "not in the network until somebody mends this"
		}
	}
	if c.said.New(kind) { // the errors of one absence differ, by port numbers if nothing else
		c.d.log.Warn(what, "controller", endpoint, "error", err)
	}
}

// Connected reports whether there is a session; runs in the loop.
func (c *control) Connected() bool { return c.out != nil }

// Send queues a report for the controller; false without a session.
func (c *control) Send(r *apiv1.HostReport) bool {
	if c.out == nil {
		return false
	}
	if !c.out.Send(r) {
		c.d.log.Warn("the controller does not read; reconnecting")
		c.out = nil
		return false
	}
	return true
}

// leave says goodbye and waits until the controller has ended the stream, which it does when no router
// sends anything here any more.
func (c *control) leave(limit time.Duration, inbox <-chan func()) {
	c.mu.Lock()
	c.leaving = true
	ended := c.ended
	c.mu.Unlock()
	if !c.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{Reason: "host daemon stopped"}}}) {
		return
	}
	c.out.Finish()
	c.out = nil
	timeout := time.After(limit)
	for {
		select {
		case <-ended:
			return
		case <-inbox: // nobody else reads it now
		case <-timeout:
			c.d.log.Warn("the controller did not confirm that this host left")
			return
		}
	}
}

func (c *control) isLeaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

// state is what Status says of the controller.
func (c *control) state() (joined, reached bool, endpoint, trouble string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.reached, c.endpoint, c.trouble
}
