package remote

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
	"scaffold.dev/scaffold/internal/cli/exit"
)

// AnswerTime bounds every call but a stream: the controller answers from memory.
const AnswerTime = 10 * time.Second

// Dial connects to what the flags choose; of several endpoints to the first where somebody answers: each controller
// hands on to the one that leads. The endpoint is for messages.
func (r *Remote) Dial() (client *http.Client, base, endpoint string, err error) {
	chosen, err := r.admin()
	if err != nil {
		return nil, "", "", err
	}
	if endpoint, err = answering(strings.Split(chosen, ",")); err != nil {
		return nil, "", "", exit.Fail(exit.Usage, "", err)
	}
	who, err := Identity(endpoint)
	if err != nil {
		return nil, "", "", err
	}
	client, base, err = api.DialAs(endpoint, who)
	return client, base, endpoint, exit.Fail(exit.Usage, "", err)
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
	return endpoints[fastest(all)], nil
}

// preferFor is how long an endpoint that was named before the one that accepted first is still waited for.
const preferFor = 50 * time.Millisecond

// fastest is the first of the endpoints of which one accepts a connection, or the first. All are tried at once: each of
// those that are gone would cost a second.
func fastest(all []api.Endpoint) int {
	accepted := make(chan int, len(all))
	for i, e := range all {
		go func() { // ends with the dial
			conn, err := net.DialTimeout(e.Network, e.Address, time.Second)
			if err != nil {
				accepted <- len(all)
				return
			}
			conn.Close()
			accepted <- i
		}()
	}
	best := len(all)
	var prefer <-chan time.Time // nil until one has accepted
	for range all {
		select {
		case i := <-accepted:
			best = min(best, i)
		case <-prefer:
			return best
		}
		if best == 0 {
			return 0
		}
		if best < len(all) && prefer == nil {
			prefer = time.After(preferFor)
		}
	}
	return best % len(all)
}

// DialAdmin connects to the Admin API.
func (r *Remote) DialAdmin() (apiv1connect.AdminClient, string, error) {
	client, base, endpoint, err := r.Dial()
	if err != nil {
		return nil, "", err
	}
	return apiv1connect.NewAdminClient(client, base), endpoint, nil
}

// DialTrust is dialAdmin for what the network is made of.
func (r *Remote) DialTrust() (apiv1connect.TrustClient, string, error) {
	client, base, endpoint, err := r.Dial()
	if err != nil {
		return nil, "", err
	}
	return apiv1connect.NewTrustClient(client, base), endpoint, nil
}

// DialBoost connects to the service of agents of boost.
func (r *Remote) DialBoost() (apiv1connect.BoostClient, string, error) {
	client, base, endpoint, err := r.Dial()
	if err != nil {
		return nil, "", err
	}
	return apiv1connect.NewBoostClient(client, base), endpoint, nil
}

// DialSwitches connects to the service of switches where the flags choose.
func (r *Remote) DialSwitches() (apiv1connect.SwitchesClient, string, error) {
	client, base, endpoint, err := r.Dial()
	if err != nil {
		return nil, "", err
	}
	return apiv1connect.NewSwitchesClient(client, base), endpoint, nil
}

// Ask calls one method and turns what went wrong into an error with code and hint. listing is the
// command that lists what may be meant. A call ends after AnswerTime, or when ctx says: what takes longer has a deadline of its
// own.
func Ask[Req, Resp any](ctx context.Context, call func(context.Context, *connect.Request[Req]) (*connect.Response[Resp], error),
	req *Req, endpoint, listing string) (*Resp, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, AnswerTime)
		defer cancel()
	}
	asked := connect.NewRequest(req)
	asked.Header().Set(api.OrderID, api.NewOrderID())
	resp, err := call(ctx, asked)
	if err != nil {
		return nil, Explain(err, endpoint, listing)
	}
	return resp.Msg, nil
}

// A ChangedError says that somebody else changed meanwhile what was to be changed.
type ChangedError struct{ error }

// Explain maps Connect's codes to ours.
func Explain(err error, endpoint, listing string) error {
	var remote *connect.Error
	switch {
	case errors.As(err, &remote):
	case errors.Is(err, context.DeadlineExceeded): // of ours, before a request was on its way
		return unreachable(err, endpoint)
	default:
		return err
	}
	said := errors.New(remote.Message())
	if strings.Contains(remote.Message(), "invalid UTF-8") { // protobuf's refusal to send it
		return exit.Failf(exit.Usage, "", "a name or text in this command is not UTF-8")
	}
	switch remote.Code() {
	case connect.CodeNotFound:
		return exit.Fail(exit.NotFound, hintFor(said, HintListing(listing)), said)
	case connect.CodeInvalidArgument, connect.CodeOutOfRange:
		return exit.Fail(exit.Usage, "", said)
	case connect.CodeAborted:
		return exit.Fail(exit.Refused, "", ChangedError{said})
	case connect.CodeAlreadyExists, connect.CodeFailedPrecondition, connect.CodePermissionDenied, connect.CodeUnauthenticated,
		connect.CodeResourceExhausted:
		return exit.Fail(exit.Refused, hintForce(said), said)
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		if connect.IsWireError(err) && !api.TimedOut(err) { // somebody answered: that he cannot do it now
			return exit.Fail(exit.Unreachable, hintFor(said, "`scaffold status` and `scaffold controller ls` say how the controllers fare"), said)
		}
		return unreachable(err, endpoint)
	case connect.CodeUnimplemented:
		return exit.Failf(exit.Failed, "a host's daemon knows flows and guests, the controller the network: --api names the other one; or one of the two is older: `scaffold upgrade` shows the versions", "the daemon at %s does not know this request", endpoint)
	case connect.CodeCanceled:
		return exit.Failf(exit.Failed, "", "interrupted")
	}
	return exit.Fail(exit.Failed, "", said)
}

// hintFor leaves the hint out where the controller gave one.
func hintFor(said error, hint string) string {
	if strings.Contains(said.Error(), "scaffold ") {
		return ""
	}
	return hint
}

// hintForce names the flag for what the API calls force, where it does not quote the whole command.
func hintForce(said error) string {
	if strings.Contains(said.Error(), "force") && !strings.Contains(said.Error(), "--force`") {
		return "--force does it anyway"
	}
	return ""
}

// HintListing says how to list what there is.
func HintListing(listing string) string {
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
	return "--api or $" + APIVariable
}

func unreachable(err error, endpoint string) error {
	if errors.Is(err, fs.ErrPermission) {
		return denied(endpoint)
	}
	hint := "is the daemon running? "
	if api.TimedOut(err) {
		hint = "a daemon listens there and is stopped, or busy: its log may say more; "
	}
	return exit.Failf(exit.Unreachable, hint+otherEndpoint(endpoint)+" names another endpoint", "no answer from %s: %s", endpoint, api.Plainly(err))
}
