package cli

import (
	"context"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func (f *fake) ListControllers(context.Context, *connect.Request[apiv1.ListControllersRequest]) (*connect.Response[apiv1.ListControllersResponse], error) {
	return answer(&apiv1.ListControllersResponse{Asked: "c1", Controllers: []*apiv1.Controller{{Name: "c1"}, {Name: "c2"}}}, nil)
}

func (f *fake) ListTokens(context.Context, *connect.Request[apiv1.ListTokensRequest]) (*connect.Response[apiv1.ListTokensResponse], error) {
	return answer(&apiv1.ListTokensResponse{Tokens: []*apiv1.Token{{Id: "1f3c9a0b7d2e4455", Role: "host", State: "open"}, {Id: "77aa", Role: "router", Name: "r1", State: "used"}}}, nil)
}

func (f *fake) ListMembers(context.Context, *connect.Request[apiv1.ListMembersRequest]) (*connect.Response[apiv1.ListMembersResponse], error) {
	return answer(&apiv1.ListMembersResponse{Members: []*apiv1.Member{{Role: "admin", Name: "alice"}, {Role: "host", Name: "s1"}}}, nil)
}

func (f *fake) GetAuthority(context.Context, *connect.Request[apiv1.GetAuthorityRequest]) (*connect.Response[apiv1.AuthorityState], error) {
	return answer(&apiv1.AuthorityState{Keys: []*apiv1.AuthorityKey{{Id: "a1b2", State: "certifies"}, {Id: "5f0c", State: "former"}}}, nil)
}

func (f *fake) ListGuests(context.Context, *connect.Request[apiv1.ListGuestsRequest]) (*connect.Response[apiv1.ListGuestsResponse], error) {
	return answer(&apiv1.ListGuestsResponse{Guests: []*apiv1.Guest{{Name: "jail"}}}, nil)
}
