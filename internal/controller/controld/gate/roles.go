package gate

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
)

// A circle is who may call a method.
type circle int

const (
	onlyAdmins         circle = iota // what is not named anywhere
	allMembers                       // whoever has a credential
	hostsToo                         // administrators, and hosts about themselves: OwnOnly looks at the message
	onlyHosts                        // of the certificate's name: the method compares
	onlyRouters                      // likewise
	unauthenticatedToo               // whoever speaks TLS
	onlyAgents                       // of boost; likewise
	hostsOrRouter                    // what daemons ask
	onlyLocal                        // who may open the controller's socket: its own process, for one
)

// circles are of methods whose name does not say it: those that read are for all members.
var circles = map[string]circle{
	apiv1connect.TrustMeetProcedure:          unauthenticatedToo,
	apiv1connect.TrustRedeemProcedure:        unauthenticatedToo,
	apiv1connect.TrustRenewProcedure:         allMembers,
	apiv1connect.TrustRotateProcedure:        allMembers, // Rotate: its own key alone
	apiv1connect.TrustForgetProcedure:        allMembers, // Forget: only itself, but for administrators
	apiv1connect.TrustListTokensProcedure:    onlyAdmins,
	apiv1connect.TrustGetAuthorityProcedure:  onlyAdmins,
	apiv1connect.AgentHostProcedure:          onlyHosts,
	apiv1connect.AgentTunnelProcedure:        onlyHosts,
	apiv1connect.AgentRouterProcedure:        onlyRouters,
	apiv1connect.BoostStreamAgentProcedure:   onlyAgents,
	apiv1connect.AgentNoteProcedure:          onlyAdmins, // of who drives the switches, on the socket
	apiv1connect.BoostSteeringSteerProcedure: onlyLocal,  // whoever holds it says where agents are, and which rules switches have
	apiv1connect.AgentKeepFlowProcedure:      onlyAdmins,
	apiv1connect.AgentKeptFlowsProcedure:     onlyAdmins,
	apiv1connect.AdminSetWeightProcedure:     hostsToo,
	apiv1connect.AdminDrainProcedure:         hostsToo,
	apiv1connect.AdminDrainHostProcedure:     hostsToo,
}

// reading are the beginnings of methods that change nothing, in the services readable. What else is served with the
// API is for administrators whatever its path is called.
var (
	reading  = []string{"Get", "List", "Watch", "Explain", "Export"}
	readable = []string{apiv1connect.AdminName, apiv1connect.SwitchesName, apiv1connect.TrustName, apiv1connect.BoostName}
)

func circleOf(path string) circle {
	if c, ok := circles[path]; ok {
		return c
	}
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if service == apiv1connect.AgentName {
		return hostsOrRouter
	}
	begins := func(prefix string) bool { return strings.HasPrefix(method, prefix) }
	if slices.Contains(readable, service) && slices.ContainsFunc(reading, begins) {
		return allMembers
	}
	if path == "/metrics" || path == "/healthz" {
		return allMembers
	}
	return onlyAdmins
}

// mayCall says why the peer may not call what is at the path; the error is connect's.
func mayCall(p Peer, path string) error {
	c := circleOf(path)
	switch {
	case c == onlyLocal && p.Unauthenticated == nil:
		if p.Local {
			return nil
		}
		return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%v may not do this: it is for the controller's own process, by its socket", p))
	case p.Rules() || c == unauthenticatedToo && p.Key != nil:
		return nil
	case p.Unauthenticated != nil:
		return connect.NewError(connect.CodeUnauthenticated, p.Unauthenticated)
	}
	may := false
	switch c {
	case allMembers:
		may = true
	case hostsToo, onlyHosts:
		may = p.Role == trust.Host
	case onlyRouters:
		may = p.Role == trust.Router
	case onlyAgents:
		may = p.Role == trust.Agent
	case hostsOrRouter:
		may = p.Role == trust.Host || p.Role == trust.Router
	}
	if may {
		return nil
	}
	return Forbidden(p, "do this")
}

// Forbidden is the refusal of what a peer may not do.
func Forbidden(p Peer, what string) error {
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf(
		"%v may not %s: a host may read, and weigh and drain itself; all else is for administrators, on the controller's machine (root and the group scaffold-admin) or after `scaffold login`", p, what))
}

// OwnOnly holds hosts to what is about themselves.
func OwnOnly(refused func(ctx context.Context, path string, err error)) connect.Option {
	return connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			var host string
			switch m := req.Any().(type) {
			case *apiv1.SetWeightRequest:
				host = m.Host
			case *apiv1.DrainRequest:
				host = m.Host
			case *apiv1.DrainHostRequest:
				host = m.Host
			default:
				return next(ctx, req)
			}
			if p := PeerOf(ctx); !p.Rules() && !p.Is(trust.Host, host) {
				err := Forbidden(p, fmt.Sprintf("steer host %.80q", host))
				refused(ctx, req.Spec().Procedure, err)
				return nil, err
			}
			return next(ctx, req)
		}
	}))
}

var errOtherName = errors.New("its credential is of another name")

// Itself says why a member may not join under a name and, of hosts, with a key.
func Itself(p Peer, role trust.Role, name string, key []byte) error {
	switch {
	case p.Local || p.Role == trust.Controller:
		return nil
	case !p.Is(role, name):
		return fmt.Errorf("%w: this is %v, and it calls itself %s %.80q: start it with --name %s, or join again with a token for the other name", errOtherName, p, role, name, p.Name)
	case key != nil && !p.Key.Equal(ed25519.PublicKey(key)):
		return fmt.Errorf("%v signs with another key than its credential is for: remove the credential and join again", p)
	}
	return nil
}
