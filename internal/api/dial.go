package api

import (
	"context"
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

// Dial returns an HTTP client that reaches endpoint by HTTP/2 without TLS, and the base URL to give
// to the generated clients with it. It connects on the first call, not here; an error means that
// the endpoint is badly written.
func Dial(endpoint string) (client *http.Client, baseURL string, err error) {
	e, err := ParseEndpoint(endpoint)
	if err != nil {
		return nil, "", err
	}
	return DialWith(e, (&net.Dialer{Timeout: dialTimeout}).DialContext), authority, nil
}

// DialWith is Dial with a dialer of the caller's, for a daemon that connects from a namespace or an
// interface of its own.
func DialWith(e Endpoint, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{
		Protocols: protocols,
		HTTP2:     pings(),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx, e.Network, e.Address)
		},
	}}
}

// BaseURL is what generated clients take beside the client of DialWith.
func BaseURL() string { return authority }

func pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
}
