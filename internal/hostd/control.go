package hostd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/agent"
	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/internal/versions"
)

// How long between attempts to reach the controller, and how much may wait to be sent to it.
const (
	retryFirst   = 25 * time.Millisecond
	retryLast    = time.Second
	retryStandby = 200 * time.Millisecond
	retryFinal   = 10 * time.Second // what it said will not change by itself
	dialLimit    = 3 * time.Second
	outLimit     = 4096
)

// errRefused is a refusal that may end by itself, errFinal one that somebody must do something about.
var (
	errRefused = errors.New("the controller refused this host")
	errFinal   = errors.New("the controller refused this host for good")
	errStandby = errors.New("the controller does not lead")
	errOther   = errors.New("the controller is of another network than the one before: --controller names those of two")
)

// A control is the stream to the controller. Its goroutine dials, joins and receives; the loop sends
// through out. What mu guards is read by API handlers as well.
type control struct {
	d       *daemon
	network string                 // id of the one that was joined; of the goroutine that joins
	out     chan *apiv1.HostReport // of the session; nil while there is none; the loop's own

	member *trust.Member // that it dialled as; the loop's own

	mu       sync.Mutex
	endpoint string        // where the controller is reached; empty: nowhere now
	changed  chan struct{} // closed when endpoint is replaced
	client   *http.Client  // to the endpoint
	conns    *connections  // of client
	reached  bool          // a session joined at least once
	session  bool          // one is joined now
	trouble  string        // why not
	said     agent.Said    // the kinds of trouble that were logged
	ended    chan struct{} // closed when the session ended
	leaving  bool          // no session after this one
}

func newControl(d *daemon) *control { return &control{d: d, changed: make(chan struct{})} }

// dial makes the next session go by the endpoint and ends the one that runs; runs in the loop.
func (c *control) dial(endpoint string) {
	e, err := api.ParseEndpoint(endpoint)
	if err != nil {
		c.d.log.Error("controller", "error", err) // the configuration was checked: a bug
		return
	}
	conns := &connections{dialer: net.Dialer{Timeout: dialLimit}}
	c.member, _ = c.d.credentials.Member()
	who, err := c.d.credentials.TLS()
	if err != nil {
		c.d.log.Error("nothing is said to the controller in the clear instead", "error", err)
		c.replace(endpoint, failing(err), conns)
		return
	}
	client := api.DialWith(e.As(who), conns.dial)
	if c.d.controllers != nil && c.d.controllers.Several() {
		client = api.Impatient(client)
	}
	c.replace(endpoint, client, conns)
}

// failing is a client that says what is wrong.
func failing(err error) *http.Client {
	return &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, err })}
}

// admitted dials anew where a credential has come since: somebody has run `scaffold join`.
func (c *control) admitted(endpoint string) {
	had := c.member
	if m, err := c.d.credentials.Member(); err == nil && m != had && c.goesBy(endpoint) {
		c.member = m
		c.dial(endpoint)
	}
}

// again dials anew: the host has another key.
func (c *control) again() {
	if endpoint, _, _ := c.current(); endpoint != "" {
		c.dial(endpoint)
	}
}

// drop ends the session: there is no way to the controller.
func (c *control) drop() {
	if !c.goesBy("") {
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

// goesBy reports whether the session goes by the endpoint, or will.
func (c *control) goesBy(endpoint string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoint == endpoint
}

// connections remembers what was dialled by one way: with the link gone, HTTP/2 would wait for
// answers that cannot come.
type connections struct {
	dialer net.Dialer

	mu     sync.Mutex
	open   []net.Conn
	closed bool
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	if len(c.open) > 8 { // the transport keeps one or two; the others ended
		c.open = c.open[1:]
	}
	c.open = append(c.open, conn)
	return conn, nil
}

func (c *connections) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.open {
		conn.Close()
	}
}

func (c *control) current() (string, *http.Client, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoint, c.client, c.changed
}

// run keeps a session until ctx ends.
func (c *control) run(ctx context.Context) {
	wait := retryFirst
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
		joined, err := c.attempt(ctx, changed, client)
		if ctx.Err() != nil || c.isLeaving() {
			return
		}
		if joined {
			wait = retryFirst
		}
		c.report(endpoint, err)
		if errors.Is(err, errFinal) {
			wait = retryFinal
		}
		if fresh := !joined && c.d.credentials.Reload(); fresh || errors.Is(err, errFinal) {
			c.d.call(ctx, func() { c.admitted(endpoint) })
		}
		next, soon := c.next(endpoint, joined, err)
		pause := wait
		if soon {
			pause = min(wait, retryFirst)
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
			switch {
			case next != endpoint:
				c.d.call(ctx, func() { c.d.goTo(next) })
			case !joined && !errors.Is(err, errRefused) && !errors.Is(err, errFinal) && !errors.Is(err, errStandby):
				c.d.call(ctx, func() { c.d.tryAnother(endpoint) })
			}
		case <-changed:
		case <-ctx.Done():
		}
		if !soon {
			wait = min(2*wait, max(wait, c.longest(err)))
		}
	}
}

// next is the controller to go to after an attempt at one; soon: it was not tried yet in this round.
func (c *control) next(endpoint string, joined bool, err error) (next string, soon bool) {
	all := c.d.controllers
	if all == nil || errors.Is(err, errFinal) {
		return endpoint, false
	}
	if joined {
		all.Lost(endpoint)
	}
	next, tired := all.Next()
	return next, !tired
}

// longest bounds the pause between attempts. A router that leads to a controller that does not lead will soon have
// found the one that does.
func (c *control) longest(err error) time.Duration {
	if errors.Is(err, errStandby) {
		return retryStandby
	}
	return retryLast
}

// report logs why there is no session, once per absence or reason of a refusal.
func (c *control) report(endpoint string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endpoint != endpoint {
		return // given up by ourselves
	}
	if err == nil {
		err = errors.New("the controller closed the stream")
	}
	c.trouble = err.Error()
	kind, what := endpoint, "controller unreachable; flows go on, trying again"
	if c.d.controllers != nil {
		kind = "unreachable" // whichever it is of several
	}
	if errors.Is(err, errRefused) || errors.Is(err, errFinal) || errors.Is(err, errOther) || agent.Foreign(err) {
		kind, what = c.trouble, "not in the network; trying again"
	}
	if c.said.New(kind) { // the errors of one absence differ, by port numbers if nothing else
		c.d.log.Warn(what, "controller", endpoint, "error", err)
	}
}

// attempt is one session: join, then orders until it ends or another way is taken.
func (c *control) attempt(ctx context.Context, changed <-chan struct{}, client *http.Client) (joined bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	stream := apiv1connect.NewAgentClient(client, api.BaseURL()).Host(ctx)
	defer stream.CloseResponse()
	ask, bids := c.d.join(ctx)
	if len(bids) == 0 {
		return false, errors.New("no uplink leads to a router")
	}
	defer func() {
		if !joined && agent.Unwelcome(err) {
			err = fmt.Errorf("%w: %w", errFinal, err)
		}
	}()
	if err := stream.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Join{Join: ask}}); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	first, err := stream.Receive()
	if err != nil {
		return false, err
	}
	if r := first.GetRefused(); r != nil {
		if r.Standby {
			c.refer(r)
			return false, fmt.Errorf("%w: %s", errStandby, r.Reason)
		}
		if !r.Retry {
			return false, fmt.Errorf("%w: %s", errFinal, r.Reason)
		}
		return false, fmt.Errorf("%w: %s", errRefused, r.Reason)
	}
	j := first.GetJoined()
	if j == nil {
		return false, errors.New("the controller's first order is not Joined: another version?")
	}
	if _, err := versions.Agent().Agree("this host", "the controller", versions.Answered(j.Protocol)); err != nil {
		return false, fmt.Errorf("%w: %w", errFinal, err)
	}
	if err := c.believe(j); err != nil {
		return false, err
	}
	return true, c.converse(ctx, cancel, stream, bids, j)
}

// refer takes the word of one that does not lead of who does.
func (c *control) refer(r *apiv1.Refused) {
	if all := c.d.controllers; all != nil {
		all.Refer(r.Leader, r.Controllers.GetEndpoints())
	}
}

// believe takes a controller for the one that leads, unless it is another network's, where several are known.
func (c *control) believe(j *apiv1.Joined) error {
	all := c.d.controllers
	if all == nil {
		return nil
	}
	if all.Several() && c.network != "" && j.NetworkId != c.network {
		return fmt.Errorf("%w (%s)", errOther, j.Network)
	}
	c.network = j.NetworkId
	endpoint, _, _ := c.current()
	all.Joined(endpoint)
	all.Tell(j.Controllers.GetEndpoints())
	return nil
}

// converse runs a session that has joined.
func (c *control) converse(ctx context.Context, cancel context.CancelFunc, stream *connect.BidiStreamForClient[apiv1.HostReport, apiv1.HostOrder], bids []*bid, j *apiv1.Joined) error {
	out, ended := make(chan *apiv1.HostReport, outLimit), make(chan struct{})
	c.mu.Lock()
	c.reached, c.session, c.trouble, c.ended = true, true, "", ended
	c.said.Forget()
	c.mu.Unlock()
	c.d.metrics.joins.Inc()
	defer func() {
		c.mu.Lock()
		c.session = false
		c.mu.Unlock()
		close(ended)
		c.d.post(func() { c.end(out) })
	}()
	go func() {
		defer cancel()
		send(ctx, stream, out)
	}()
	c.d.post(func() {
		if ctx.Err() == nil { // else another way was taken meanwhile
			c.d.joined(j, bids, out)
		}
	})
	for {
		order, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if r := order.GetRefused(); r != nil {
			return fmt.Errorf("the controller ended the session: %s", r.Reason)
		}
		if told := order.GetControllers(); told != nil {
			if all := c.d.controllers; all != nil {
				all.Tell(told.Endpoints)
			}
			continue
		}
		c.d.post(func() { c.d.order(order) })
	}
}

// send writes reports until the session ends; closing out ends the sending half.
func send(ctx context.Context, stream *connect.BidiStreamForClient[apiv1.HostReport, apiv1.HostOrder], out <-chan *apiv1.HostReport) {
	for {
		select {
		case r, ok := <-out:
			if !ok {
				stream.CloseRequest()
				<-ctx.Done()
				return
			}
			if err := stream.Send(r); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// end forgets a session; runs in the loop.
func (c *control) end(out chan *apiv1.HostReport) {
	if c.out == out {
		c.out = nil
	}
}

// send queues a report for the controller. One that does not read is given up: the next session begins
// with a snapshot.
func (c *control) send(r *apiv1.HostReport) bool {
	if c.out == nil {
		return false
	}
	select {
	case c.out <- r:
		return true
	default:
		c.d.log.Warn("the controller does not read; reconnecting")
		close(c.out)
		c.out = nil
		return false
	}
}

// leave says goodbye and waits until the controller has ended the stream, which it does when no router
// sends anything here any more.
func (c *control) leave(limit time.Duration, inbox <-chan func()) {
	c.mu.Lock()
	c.leaving = true
	ended := c.ended
	c.mu.Unlock()
	if !c.send(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{Reason: "host daemon stopped"}}}) {
		return
	}
	close(c.out)
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
