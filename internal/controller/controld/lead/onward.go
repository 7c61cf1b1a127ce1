package lead

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
)

// leaderWait is how long a call waits for somebody to lead: a little longer than it takes after one was killed.
const leaderWait = 8 * time.Second

// handOn passes calls to the leader, streams too. A call that finds none waits for one, who may be this controller; so
// does an order with a number whose leader died before it answered.
func (c *Process) handOn() http.Handler {
	errs := connect.NewErrorWriter()
	unavailable := func(w http.ResponseWriter, r *http.Request, err error) {
		if a, ok := r.Context().Value(attemptKey{}).(*attempt); ok {
			a.failed = err
			return
		}
		errs.Write(w, r, connect.NewError(connect.CodeUnavailable, err)) //nolint:errcheck // the caller is gone
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "scaffold"
			r.Out.Header.Set(gate.HandedOn, c.cfg.Name)
			r.Out.Header.Set(gate.OnBehalf, gate.PeerOf(r.In.Context()).Header())
			r.Out.Header.Set(gate.SeenAt, r.In.RemoteAddr)
			if who, ok := api.CallerOf(r.In.Context()); ok {
				r.Out.Header.Set(api.LocalUser, who.Name())
			}
		},
		Transport:     c.onward,
		FlushInterval: -1,
		ErrorHandler:  unavailable,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wait, cancel := context.WithTimeout(r.Context(), leaderWait)
		defer cancel()
		order := repeatable(r)
		var failed error // of a leader that may have done what it was asked
		for {
			_, _, changed := c.Peers.Now()
			if t := c.term.Load(); t != nil {
				t.ServeHTTP(w, order.again(r))
				return
			}
			at, once := c.reached(wait)
			once = once || order != nil && order.asks
			switch {
			case at == "" || r.Header.Get(gate.HandedOn) != "" || c.Gate != nil && !c.Gate.Ready(): // it has just begun
			case failed != nil && !once: // it would do it again
				unavailable(w, r, inDoubt(failed))
				return
			case order == nil || !once:
				proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), onwardKey{}, at)))
				return
			default:
				try := new(attempt)
				ctx := context.WithValue(context.WithValue(r.Context(), onwardKey{}, at), attemptKey{}, try)
				if proxy.ServeHTTP(w, order.again(r).WithContext(ctx)); try.failed == nil || r.Context().Err() != nil {
					return
				}
				failed = try.failed
			}
			select {
			case <-changed:
			case <-time.After(lookAgain):
			case <-wait.Done():
				if failed == nil {
					failed = c.noLeader()
				} else {
					failed = inDoubt(failed)
				}
				unavailable(w, r, failed)
				return
			}
		}
	})
}

// lookAgain is how often somebody who waits for a leader looks whether this controller is it.
const lookAgain = 100 * time.Millisecond

// reached is the first endpoint at which the leader accepts connections: most requests that are sent to one who is gone
// could not be sent again. once says that it knows orders that come again.
func (c *Process) reached(ctx context.Context) (at string, once bool) {
	l := c.Peers.Leader()
	if l == nil || l.Name == c.cfg.Name {
		return "", false
	}
	for _, endpoint := range l.API {
		e, err := api.ParseEndpoint(endpoint)
		if err != nil {
			continue
		}
		dialer := net.Dialer{Timeout: time.Second}
		if conn, err := dialer.DialContext(ctx, e.Network, e.Address); err == nil {
			conn.Close()
			return endpoint, l.Once
		}
	}
	return "", false
}

// onward sends a request to the endpoint that its context names.
type onward struct {
	who     *tls.Config   // nil: in the clear
	by      func() string // the network's key by which it is known to those that it calls now
	mu      sync.Mutex
	since   string // by, when the clients were made
	clients map[string]*http.Client
}

// RoundTrip is an http.Transport's.
func (o *onward) RoundTrip(r *http.Request) (*http.Response, error) {
	endpoint, _ := r.Context().Value(onwardKey{}).(string)
	client, err := o.client(endpoint)
	if err != nil {
		return nil, err
	}
	resp, err := client.Transport.RoundTrip(r)
	if _, repeatable := r.Context().Value(attemptKey{}).(*attempt); err == nil && repeatable {
		err = api.Whole(resp)
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

type onwardKey struct{}

func (o *onward) client(endpoint string) (*http.Client, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if by := o.by(); by != o.since { // connections show the certificate that they were made with
		for _, c := range o.clients {
			c.CloseIdleConnections()
		}
		clear(o.clients)
		o.since = by
	}
	if c := o.clients[endpoint]; c != nil {
		return c, nil
	}
	c, _, err := api.DialAs(endpoint, o.who)
	if err == nil {
		o.clients[endpoint] = c
	}
	return c, err
}
