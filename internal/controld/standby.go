package controld

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
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/obs"
)

// handedOn marks what a standby passes to the leader. Whoever gets it and does not lead passes it no further.
const handedOn = "Scaffold-Handed-On"

// seenAt is with it: the address that the call came from.
const seenAt = "Scaffold-Seen-At"

// leaderWait is how long a call waits for somebody to lead: a little longer than it takes after one was killed.
const leaderWait = 8 * time.Second

// standbyHandler serves what a controller serves that does not lead: who does, for daemons; everything else by asking
// that one. Metrics and health are its own.
func (c *seat) standbyHandler() http.Handler {
	mux := http.NewServeMux()
	agent := &standbyAgent{c: c}
	path, handler := apiv1connect.NewAgentHandler(agent)
	mux.Handle(path+"Host", handler)
	mux.Handle(path+"Router", handler)
	onward := c.handOn()
	mux.Handle(path, onward)
	path, handler = apiv1connect.NewAdminHandler(&standbyAdmin{c: c})
	mux.Handle(path+"ListControllers", handler)
	mux.Handle(path, onward)
	path, _ = apiv1connect.NewTrustHandler(apiv1connect.UnimplementedTrustHandler{})
	mux.Handle(path, onward)
	for _, m := range c.cfg.Mounts {
		mux.Handle(m.Path, onward)
	}
	mux.Handle("/", obs.Handler(c.metrics.registry, c.health, c.cfg.Profiles))
	if c.gate != nil {
		return withDeadlines(c.gate.wrap(mux))
	}
	return withDeadlines(mux)
}

// standbyAgent sends daemons to the leader.
type standbyAgent struct {
	apiv1connect.UnimplementedAgentHandler
	c *seat
}

// Host refuses a host and says where to go.
func (a *standbyAgent) Host(_ context.Context, stream *connect.BidiStream[apiv1.HostReport, apiv1.HostOrder]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	return stream.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Refused{Refused: a.c.elsewhere()}})
}

// Router refuses a router and says where to go.
func (a *standbyAgent) Router(_ context.Context, stream *connect.BidiStream[apiv1.RouterReport, apiv1.RouterOrder]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	return stream.Send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Refused{Refused: a.c.elsewhere()}})
}

// elsewhere is the answer of one that does not lead.
func (c *seat) elsewhere() *apiv1.Refused {
	r := &apiv1.Refused{Retry: true, Standby: true, Controllers: &apiv1.Controllers{}}
	running, _, _ := c.peers.now()
	for _, x := range running {
		r.Controllers.Endpoints = append(r.Controllers.Endpoints, x.API...)
	}
	l := c.peers.leader()
	if l == nil || l.Name == c.cfg.Name { // it leads in a moment, or did until now
		r.Reason = c.noLeader().Error()
		return r
	}
	r.Leader, r.Reason = l.API, "controller "+c.cfg.Name+" stands by: "+l.Name+" leads"
	return r
}

// handOn passes calls to the leader, streams too. A call that finds none waits for one, who may be this controller.
func (c *seat) handOn() http.Handler {
	errs := connect.NewErrorWriter()
	unavailable := func(w http.ResponseWriter, r *http.Request, err error) {
		errs.Write(w, r, connect.NewError(connect.CodeUnavailable, err)) //nolint:errcheck // the caller is gone
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "scaffold"
			r.Out.Header.Set(handedOn, c.cfg.Name)
			r.Out.Header.Set(onBehalf, peerOf(r.In.Context()).header())
			r.Out.Header.Set(seenAt, r.In.RemoteAddr)
		},
		Transport:     &onward{who: c.gate.client(), by: c.gate.certifying, clients: map[string]*http.Client{}},
		FlushInterval: -1,
		ErrorHandler:  unavailable,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wait, cancel := context.WithTimeout(r.Context(), leaderWait)
		defer cancel()
		for {
			_, _, changed := c.peers.now()
			if t := c.term.Load(); t != nil {
				t.ServeHTTP(w, r)
				return
			}
			if at := c.reached(wait); at != "" && r.Header.Get(handedOn) == "" && (c.gate == nil || c.gate.ready()) { // it has just begun
				proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), onwardKey{}, at)))
				return
			}
			select {
			case <-changed:
			case <-time.After(lookAgain):
			case <-wait.Done():
				unavailable(w, r, c.noLeader())
				return
			}
		}
	})
}

// lookAgain is how often somebody who waits for a leader looks whether this controller is it.
const lookAgain = 100 * time.Millisecond

// reached is the first endpoint at which the leader accepts connections; a request that is sent to one who is gone
// could not be sent again.
func (c *seat) reached(ctx context.Context) string {
	l := c.peers.leader()
	if l == nil || l.Name == c.cfg.Name {
		return ""
	}
	for _, endpoint := range l.API {
		e, err := api.ParseEndpoint(endpoint)
		if err != nil {
			continue
		}
		dialer := net.Dialer{Timeout: time.Second}
		if conn, err := dialer.DialContext(ctx, e.Network, e.Address); err == nil {
			conn.Close()
			return endpoint
		}
	}
	return ""
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
	return client.Transport.RoundTrip(r)
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
