package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// authority stands in the base URL for whatever the endpoint is: the transport dials the endpoint
// and never looks it up. It spares us sockets and zones inside URLs.
const authority = "http://scaffold"

// How long a silent connection is believed, as HTTP/2 pings tell. Streams are silent for hours in a
// quiet network; a peer that vanished without a FIN is noticed after the sum of the two. They are
// generous because nothing that has to be quick depends on them: probes find dead hosts.
const (
	pingAfter   = 5 * time.Second
	pingTimeout = 10 * time.Second
)

// dialTimeout bounds one attempt to connect.
const dialTimeout = 5 * time.Second

// A DialFunc connects, in package net's terms.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// ErrNeedsCredential says that an endpoint is spoken by TLS and that we have nothing to show there.
var ErrNeedsCredential = errors.New("it is spoken by TLS, and there is no credential for it")

// Dial returns an HTTP client that reaches endpoint by HTTP/2, and the base URL to give
// to the generated clients with it. It connects on the first call, not here; an error means that
// the endpoint is badly written, or wants TLS: DialAs has that.
func Dial(endpoint string) (client *http.Client, baseURL string, err error) {
	return DialAs(endpoint, nil)
}

// DialAs is Dial by TLS, in the name of the one whose configuration it is; nil: in the clear.
func DialAs(endpoint string, who *tls.Config) (client *http.Client, baseURL string, err error) {
	e, err := ParseEndpoint(endpoint)
	if err != nil {
		return nil, "", err
	}
	if e = e.As(who); e.Secure && e.TLS == nil {
		return nil, "", fmt.Errorf("endpoint %v: %w", e, ErrNeedsCredential)
	}
	return DialWith(e, (&net.Dialer{Timeout: dialTimeout}).DialContext), authority, nil
}

// DialWith is Dial with a dialer of the caller's, for a daemon that connects from a namespace or an
// interface of its own. Endpoint.As says by TLS or not.
func DialWith(e Endpoint, dial DialFunc) *http.Client {
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, e.Network, e.Address) }
	protocols := new(http.Protocols)
	if e.TLS == nil {
		protocols.SetUnencryptedHTTP2(true)
		return &http.Client{Transport: &http.Transport{Protocols: protocols, HTTP2: pings(), DialContext: connect}}
	}
	protocols.SetHTTP2(true)
	return &http.Client{Transport: secured{&http.Transport{
		Protocols: protocols, HTTP2: pings(), DialContext: connect, TLSClientConfig: e.TLS.Clone(), TLSHandshakeTimeout: dialTimeout,
	}}}
}

// secured takes URLs as they are for all endpoints, and goes by TLS.
type secured struct{ *http.Transport }

func (s secured) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // a transport must not change the caller's
	r.URL.Scheme = "https"
	return s.Transport.RoundTrip(r)
}

// BaseURL is what generated clients take beside the client of DialWith.
func BaseURL() string { return authority }

func pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
}
