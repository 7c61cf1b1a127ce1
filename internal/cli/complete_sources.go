package cli

import (
	"context"
	"slices"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/flow"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/service"
)

// A source lists what there is of a kind, where the command itself would ask. What stands behind a tab says more of it,
// where the shell shows that.
type source func(context.Context, *remote.HostDaemons) []string

// Errors of sources are dropped: nobody who presses Tab wants to read them, and then there are no names.

// from asks one question; the answer is empty where nobody answers.
func from[C, Req, Resp any](ctx context.Context, dial func() (C, string, error), call func(C, context.Context, *connect.Request[Req]) (*connect.Response[Resp], error)) *Resp {
	client, _, err := dial()
	if err != nil {
		return new(Resp)
	}
	answer, err := call(client, ctx, connect.NewRequest(new(Req)))
	if err != nil {
		return new(Resp)
	}
	return answer.Msg
}

func serviceSource(ctx context.Context, f *remote.HostDaemons) []string {
	return namesOf(from(ctx, f.DialAdmin, apiv1connect.AdminClient.ListServices).Services)
}

func hostSource(ctx context.Context, f *remote.HostDaemons) []string {
	return namesOf(from(ctx, f.DialAdmin, apiv1connect.AdminClient.ListHosts).Hosts)
}

func routerSource(ctx context.Context, f *remote.HostDaemons) []string {
	return namesOf(from(ctx, f.DialAdmin, apiv1connect.AdminClient.ListRouters).Routers)
}

func controllerSource(ctx context.Context, f *remote.HostDaemons) []string {
	return namesOf(from(ctx, f.DialAdmin, apiv1connect.AdminClient.ListControllers).Controllers)
}

func switchSource(ctx context.Context, f *remote.HostDaemons) []string {
	return namesOf(from(ctx, f.DialSwitches, apiv1connect.SwitchesClient.ListSwitches).Switches)
}

// memberSource lists members of one role; "" of all.
func memberSource(role string) source {
	return func(ctx context.Context, f *remote.HostDaemons) (list []string) {
		all := from(ctx, f.DialTrust, apiv1connect.TrustClient.ListMembers)
		for _, m := range all.Members {
			if role == "" || m.Role == role {
				list = append(list, m.Name+"\t"+m.Role)
			}
		}
		return list
	}
}

func tokenSource(ctx context.Context, f *remote.HostDaemons) (list []string) {
	all := from(ctx, f.DialTrust, apiv1connect.TrustClient.ListTokens)
	for _, t := range all.Tokens {
		list = append(list, t.Id+"\t"+t.Role+" "+output.OrElse(t.Name, "of any name")+", "+t.State)
	}
	return list
}

// keySource lists the network's keys that can be taken away.
func keySource(ctx context.Context, f *remote.HostDaemons) (list []string) {
	all := from(ctx, f.DialTrust, apiv1connect.TrustClient.GetAuthority)
	for _, k := range all.Keys {
		if k.State != "certifies" {
			list = append(list, k.Id+"\t"+k.State)
		}
	}
	return list
}

// completeFlows is of how many flows of a host somebody chooses who presses Tab.
const completeFlows = 200

func flowSource(ctx context.Context, f *remote.HostDaemons) (list []string) {
	all, err := flow.List(ctx, f, &apiv1.ListFlowsRequest{Limit: completeFlows})
	if err != nil {
		return nil
	}
	for _, x := range all.Flows {
		list = append(list, x.Id+"\t"+x.Service+" "+x.Process)
	}
	return list
}

func guestSource(ctx context.Context, f *remote.HostDaemons) []string {
	return namesOf(from(ctx, func() (apiv1connect.LocalClient, string, error) {
		client, node, err := f.Local()
		return client, node.Path, err
	}, apiv1connect.LocalClient.ListGuests).Guests)
}

func namesOf[T interface{ GetName() string }](all []T) (list []string) {
	for _, x := range all {
		list = append(list, x.GetName())
	}
	return list
}

// either lists what both do.
func either(a, b source) source {
	return func(ctx context.Context, f *remote.HostDaemons) []string { return slices.Concat(a(ctx, f), b(ctx, f)) }
}

// weighed are hosts as `service weight` takes them.
func weighed(ctx context.Context, f *remote.HostDaemons) (list []string) {
	for _, h := range hostSource(ctx, f) {
		list = append(list, h+"=")
	}
	return list
}

// allowed are those who may be let connect.
func allowed(ctx context.Context, f *remote.HostDaemons) []string {
	list := append(hostSource(ctx, f), service.Anybody, "none")
	for _, s := range serviceSource(ctx, f) {
		list = append(list, "service:"+s)
	}
	return list
}

func serving(ctx context.Context, f *remote.HostDaemons) []string {
	return append(hostSource(ctx, f), service.Anybody)
}

func roles(context.Context, *remote.HostDaemons) []string {
	return []string{"admin", "host", "router", "local"}
}
