package cli

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/cli/output"
)

// The one flow that the fake knows.
const (
	fakeFlow   = "9f3c1b2a44d0e871"
	fakeFormer = "8000000000000001"
	fakeStable = "fd5d:0:1:101:9f3c:1b2a:44d0:e871"
)

func theFlow() *apiv1.Flow {
	return &apiv1.Flow{Id: fakeFlow, Host: "c1", Role: "client", Proto: "tcp", Service: "web", State: "bound", Pid: 42,
		Process: "curl", IdleMs: 1500, Stable: fakeStable, Uplink: "eth0", Moves: 2}
}

func notFound(what string) error {
	return connect.NewError(connect.CodeNotFound, errors.New("no such "+what))
}

func (f *fake) MoveFlows(_ context.Context, r *connect.Request[apiv1.MoveFlowsRequest]) (*connect.Response[apiv1.MoveFlowsResponse], error) {
	switch {
	case r.Msg.To == "eth9":
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("eth9 is attached to no router"))
	case r.Msg.Flow != "" && r.Msg.Flow != fakeFlow:
		return nil, notFound("flow")
	case r.Msg.From != "":
		return answer(&apiv1.MoveFlowsResponse{Moved: 3, Failed: 1}, nil)
	}
	return answer(&apiv1.MoveFlowsResponse{Moved: 1}, nil)
}

func (f *fake) GetFlowHistory(_ context.Context, r *connect.Request[apiv1.GetFlowHistoryRequest]) (*connect.Response[apiv1.FlowHistory], error) {
	if r.Msg.Flow != fakeFlow && r.Msg.Flow != fakeStable && r.Msg.Flow != "[fd5e::1]:40000" && r.Msg.Flow != fakeFormer {
		return nil, notFound("flow")
	}
	return answer(&apiv1.FlowHistory{Flow: theFlow(), Events: []*apiv1.FlowEvent{
		{UnixNs: 1e18, Kind: "begin", Text: "resolved to s1, one of 2 instances"},
		{UnixNs: 1e18 + 3588e6, Kind: "move", Text: "eth0 -> eth1: eth0 lost its carrier"},
		{UnixNs: 1e18 + 3602e6, Kind: "stall", Text: "nothing came through while it moved", StallNs: 14_200_000},
		{UnixNs: 1e18 + 75e9, Kind: "failover", Text: "s1 is gone: goes on at s2", StallNs: 9_000_000},
	}}, nil)
}

func (f *fake) Explain(_ context.Context, r *connect.Request[apiv1.ExplainRequest]) (*connect.Response[apiv1.ServiceExplanation], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.services[r.Msg.Name]
	if s == nil {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("no service named %q", r.Msg.Name))
	}
	return answer(&apiv1.ServiceExplanation{Service: s, Reasons: []string{"s2: no new flows: 3 probes unanswered"},
		Events: []*apiv1.Event{{UnixMs: 1e12, Kind: "host.suspect", Subject: "s2", Text: "3 probes unanswered"}}}, nil)
}

func (f *fake) DrainHost(_ context.Context, r *connect.Request[apiv1.DrainHostRequest]) (*connect.Response[apiv1.DrainHostResponse], error) {
	switch {
	case r.Msg.Host != "s1" && r.Msg.Host != "s2":
		return nil, notFound("host")
	case r.Msg.Host == "s1" && !r.Msg.Force && !r.Msg.DryRun && !r.Msg.Undrain:
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("s1 is the last host that serves web: force drains it"))
	}
	d := &apiv1.Drained{Service: "web", Mode: output.OrElse(r.Msg.Mode, "wait"), Flows: 2, Others: 1}
	if r.Msg.Mode == "shed" {
		d.Breaks = "2 connections are reset"
	}
	if !r.Msg.DryRun {
		f.shrink = true
	}
	return answer(&apiv1.DrainHostResponse{Services: []*apiv1.Drained{d}, Flows: 1}, nil)
}

func (f *fake) GetHostStatus(context.Context, *connect.Request[apiv1.GetHostStatusRequest]) (*connect.Response[apiv1.HostStatus], error) {
	return answer(&apiv1.HostStatus{Name: "c1", State: "joined", Network: "lab", Trust: "open", Identity: "fd5e::1", Flows: 5,
		Counters: map[string]uint64{"drop_full": 3},
		Uplinks: []*apiv1.Uplink{
			{Interface: "eth0", Router: "r1", Locator: "fd5d:0:1:101::/64", Up: true, Mtu: 1500},
			{Interface: "eth1"},
		}}, nil)
}
