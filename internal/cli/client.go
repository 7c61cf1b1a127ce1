package cli

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// answerTime bounds every call but a stream: the controller answers from memory.
const answerTime = 10 * time.Second

// dial connects to what the flags choose; of several endpoints to the first where somebody answers: each controller
// hands on to the one that leads. The endpoint is for messages.
func (r *remote) dial() (client *http.Client, base, endpoint string, err error) {
	chosen, err := r.admin()
	if err != nil {
		return nil, "", "", err
	}
	if endpoint, err = answering(strings.Split(chosen, ",")); err != nil {
		return nil, "", "", fail(ExitUsage, "", err)
	}
	who, err := as(endpoint)
	if err != nil {
		return nil, "", "", err
	}
	client, base, err = api.DialAs(endpoint, who)
	return client, base, endpoint, fail(ExitUsage, "", err)
}

// answering is the first of several endpoints that accepts a connection; where none does, the first, which then says
// what is wrong. All must be good.
func answering(endpoints []string) (string, error) {
	var all []api.Endpoint
	for i, text := range endpoints {
		endpoints[i] = strings.TrimSpace(text)
		e, err := api.ParseEndpoint(endpoints[i])
		if err != nil {
			return "", err
		}
		all = append(all, e)
	}
	if len(all) == 1 {
		return endpoints[0], nil
	}
	for i, e := range all {
		if conn, err := net.DialTimeout(e.Network, e.Address, time.Second); err == nil {
			conn.Close()
			return endpoints[i], nil
		}
	}
	return endpoints[0], nil
}

// dialAdmin connects to the Admin API.
func (r *remote) dialAdmin() (apiv1connect.AdminClient, string, error) {
	client, base, endpoint, err := r.dial()
	if err != nil {
		return nil, "", err
	}
	return apiv1connect.NewAdminClient(client, base), endpoint, nil
}

// dialTrust is dialAdmin for what the network is made of.
func (r *remote) dialTrust() (apiv1connect.TrustClient, string, error) {
	client, base, endpoint, err := r.dial()
	if err != nil {
		return nil, "", err
	}
	return apiv1connect.NewTrustClient(client, base), endpoint, nil
}

// ask calls one method and turns what went wrong into an error with code and hint. listing is the
// command that lists what may be meant.
func ask[Req, Resp any](ctx context.Context, call func(context.Context, *connect.Request[Req]) (*connect.Response[Resp], error),
	req *Req, endpoint, listing string) (*Resp, error) {
	return askFor(ctx, answerTime, call, req, endpoint, listing)
}

// askFor is ask for what takes longer.
func askFor[Req, Resp any](ctx context.Context, limit time.Duration, call func(context.Context, *connect.Request[Req]) (*connect.Response[Resp], error),
	req *Req, endpoint, listing string) (*Resp, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := call(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, explain(err, endpoint, listing)
	}
	return resp.Msg, nil
}

// explain maps Connect's codes to ours.
func explain(err error, endpoint, listing string) error {
	var remote *connect.Error
	if !errors.As(err, &remote) {
		return err
	}
	said := errors.New(remote.Message())
	switch remote.Code() {
	case connect.CodeNotFound:
		return fail(ExitNotFound, hintFor(said, hintListing(listing)), said)
	case connect.CodeInvalidArgument, connect.CodeOutOfRange:
		return fail(ExitUsage, "", said)
	case connect.CodeAlreadyExists, connect.CodeFailedPrecondition, connect.CodePermissionDenied, connect.CodeUnauthenticated,
		connect.CodeAborted, connect.CodeResourceExhausted:
		return fail(ExitRefused, hintForce(said), said)
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		return unreachable(err, endpoint, remote.Message())
	case connect.CodeUnimplemented:
		return failf(ExitFailed, "flows and guests are asked of a host's daemon, the network of the controller; or bring both ends to the same version", "%s does not offer this", endpoint)
	case connect.CodeCanceled:
		return failf(ExitFailed, "", "interrupted")
	}
	return fail(ExitFailed, "", said)
}

// hintFor leaves the hint out where the controller gave one.
func hintFor(said error, hint string) string {
	if strings.Contains(said.Error(), "scaffold ") {
		return ""
	}
	return hint
}

// hintForce names the flag for what the API calls force.
func hintForce(said error) string {
	if strings.Contains(said.Error(), "force") {
		return "--force does it anyway"
	}
	return ""
}

func hintListing(listing string) string {
	if listing == "" {
		return ""
	}
	return "`" + listing + "` lists them"
}

// otherEndpoint is the flag that names another one. A bare path is the socket of what has no other endpoint.
func otherEndpoint(endpoint string) string {
	if !strings.Contains(endpoint, ":") {
		return "--socket"
	}
	return "--api or $" + apiVariable
}

func unreachable(err error, endpoint, said string) error {
	if errors.Is(err, fs.ErrPermission) {
		return failf(ExitMissing, "its socket is root's: try again with sudo", "%s: permission denied", endpoint)
	}
	return failf(ExitUnreachable, "is the daemon running? "+otherEndpoint(endpoint)+" names another endpoint", "no answer from %s: %s", endpoint, said)
}
