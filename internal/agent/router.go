package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/versions"
)

// How long between attempts to reach the controller.
const (
	retryFirst = 25 * time.Millisecond
	retryLast  = time.Second
)

// ErrRefused says that the controller does not want this router.
var ErrRefused = errors.New("the controller refused this router")

// Why a controller is left for another one.
var (
	errStandby      = errors.New("the controller does not lead")
	errDeposed      = errors.New("the controller leads no more: there is a newer one")
	errOtherNetwork = errors.New("the controller is of another network than the one before: --controller names those of two")
)

// A Router keeps a stream to the controller in a router's name. Its functions are called by way of Call, in
// the loop of the one who owns the router's state.
type Router struct {
	Controllers *api.Controllers                                                     // where they are; the relay of hosts goes to the same
	Dial        func(ctx context.Context, network, address string) (net.Conn, error) // nil: from this process's namespace
	Credentials *Credentials                                                         // nil: in the clear
	Log         *slog.Logger
	Call        func(func()) bool // runs a function in the loop and waits for it; false after the loop's end
	Join        func() *apiv1.RouterJoin
	Joined      func(*Session, *apiv1.RouterJoined) error // an error ends the session
	Order       func(*apiv1.RouterOrder)
	Parted      func(*Session)
	Health      func(error) // why there is no session; called from any goroutine

	mu     sync.Mutex
	joined string             // the endpoint of the session
	end    context.CancelFunc // nil while there is none

	network string // id of the one that was joined
	epoch   uint64 // of the last leader
}

type stream = *connect.BidiStreamForClient[apiv1.RouterReport, apiv1.RouterOrder]

// Converse keeps a session with the controller until ctx ends, and says once why there is none.
func (r *Router) Converse(ctx context.Context) {
	wait := retryFirst
	var said Said
	for ctx.Err() == nil {
		endpoint, tired := r.Controllers.Next()
		if tired {
			wait = min(2*wait, retryLast)
			if !pause(ctx, wait) {
				return
			}
		}
		joined, err := r.attempt(ctx, endpoint)
		if ctx.Err() != nil {
			return
		}
		if joined {
			wait = retryFirst / 2
			said.Forget()
			r.Controllers.Lost(endpoint)
		} else if r.Credentials != nil {
			r.Credentials.Reload()
		}
		kind, what := "unreachable", "controller unreachable; forwarding goes on, trying again"
		if errors.Is(err, ErrRefused) || errors.Is(err, errOtherNetwork) || Unwelcome(err) || Foreign(err) {
			kind, what = err.Error(), "not in the network; forwarding goes on, trying again"
		}
		if said.New(kind) { // the errors of one absence differ
			r.Log.Warn(what, "controller", endpoint, "error", err)
		}
		r.Health(err)
		if joined && !pause(ctx, retryFirst) { // all routers lost it at once
			return
		}
	}
}

// pause waits about so long; false means that ctx ended.
func pause(ctx context.Context, wait time.Duration) bool {
	select {
	case <-time.After(wait/2 + rand.N(wait)):
		return true
	case <-ctx.Done():
		return false
	}
}

// client connects on the first call.
func (r *Router) client(endpoint string) (client *http.Client, err error) {
	var who *tls.Config
	if r.Credentials != nil {
		if who, err = r.Credentials.TLS(); err != nil {
			return nil, err
		}
	}
	if r.Dial == nil {
		client, _, err = api.DialAs(endpoint, who)
	} else {
		var to api.Endpoint
		if to, err = api.ParseEndpoint(endpoint); err == nil {
			client = api.DialWith(to.As(who), r.Dial)
		}
	}
	if err == nil && r.Controllers.Several() {
		client = api.Impatient(client)
	}
	return client, err
}

// attempt is one session: join, then orders until it ends.
func (r *Router) attempt(parent context.Context, endpoint string) (joined bool, err error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	client, err := r.client(endpoint)
	if err != nil {
		return false, err
	}
	defer client.CloseIdleConnections()
	stream := apiv1connect.NewAgentClient(client, api.BaseURL()).Router(ctx)
	defer stream.CloseResponse()
	var join *apiv1.RouterJoin
	if !r.Call(func() { join = r.Join() }) {
		return false, context.Canceled
	}
	speaks := versions.Agent()
	join.Speaks = &apiv1.Versions{From: speaks.From, To: speaks.To}
	if err := stream.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: join}}); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	first, err := stream.Receive()
	if err != nil {
		return false, err
	}
	if no := first.GetRefused(); no.GetStandby() {
		r.Controllers.Refer(no.Leader, no.Controllers.GetEndpoints())
		return false, fmt.Errorf("%w: %s", errStandby, no.Reason)
	} else if no != nil {
		return false, fmt.Errorf("%w: %s", ErrRefused, no.Reason)
	}
	if first.GetJoined() == nil {
		return false, errors.New("the controller's first order is not Joined: another version?")
	}
	if _, err := speaks.Agree("this router", "the controller", versions.Answered(first.GetJoined().Protocol)); err != nil {
		return false, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := r.believe(first.GetJoined()); err != nil {
		return false, err
	}
	r.Controllers.Joined(endpoint)
	r.Controllers.Tell(first.GetJoined().Controllers.GetEndpoints())
	r.in(endpoint, cancel)
	defer r.in("", nil)
	return true, r.obey(ctx, cancel, stream, first.GetJoined())
}

// believe refuses a controller of another network, and one whose time is over and who does not know it yet, where
// there are others to go to.
func (r *Router) believe(j *apiv1.RouterJoined) error {
	if !r.Controllers.Several() {
		r.network, r.epoch = j.NetworkId, j.Epoch
		return nil
	}
	switch {
	case r.network != "" && j.NetworkId != r.network:
		return fmt.Errorf("%w (%s)", errOtherNetwork, j.Network)
	case j.Epoch < r.epoch:
		return errDeposed
	}
	r.network, r.epoch = j.NetworkId, j.Epoch
	return nil
}

// obey runs a session that has joined.
func (r *Router) obey(ctx context.Context, cancel context.CancelFunc, stream stream, j *apiv1.RouterJoined) error {
	s := &Session{out: make(chan *apiv1.RouterReport, outLimit), cancel: cancel}
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer cancel()
		s.write(ctx, stream)
	}()
	defer func() {
		cancel()
		<-written
		r.Call(func() { r.Parted(s) })
	}()
	if j.Trust == "open" {
		r.Log.Warn("the network is open: anybody who reaches it may join it (trust: open)", "network", j.Network)
	}
	r.renew(j.Credential)
	var err error
	if !r.Call(func() { err = r.Joined(s, j) }) || err != nil {
		return err
	}
	for {
		order, err := stream.Receive()
		if err != nil {
			return fmt.Errorf("the stream ended: %w", err)
		}
		if no := order.GetRefused(); no != nil {
			return fmt.Errorf("the controller ended the session: %s", no.Reason)
		}
		if fresh := order.GetCredential(); fresh != nil {
			r.renew(fresh)
			continue
		}
		if all := order.GetControllers(); all != nil {
			r.Controllers.Tell(all.Endpoints)
			continue
		}
		if !r.Call(func() { r.Order(order) }) {
			return context.Canceled
		}
	}
}

// renew keeps a credential that the controller sent.
func (r *Router) renew(fresh *apiv1.Credential) {
	if r.Credentials == nil || fresh == nil {
		return
	}
	if err := r.Credentials.Take(fresh); err != nil {
		r.Log.Error("credential", "error", err)
	}
}
