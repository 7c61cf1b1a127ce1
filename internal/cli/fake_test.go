package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// fake is a controller and a host daemon that know one small network and nothing of the kernel.
type fake struct {
	apiv1connect.UnimplementedAdminHandler
	apiv1connect.UnimplementedLocalHandler
	apiv1connect.UnimplementedSwitchesHandler
	apiv1connect.UnimplementedTrustHandler
	flows    []*apiv1.SwitchFlow // of operators
	mu       sync.Mutex
	services map[string]*apiv1.Service
	shrink   bool // a flow of s1 ends at each look at that host
}

func newFake() http.Handler {
	f := &fake{services: map[string]*apiv1.Service{"web": {
		Name: "web", Sid: "00000001-00c0ffee00c0ffee", Address: "fd5c:0:0:1:c0:ffee:c0:ffee", Policy: &apiv1.Policy{Ready: "tcp"},
		Instances: []*apiv1.Instance{
			{Host: "s1", Locator: "fd5d:0:1:101::/64", Proto: "tcp", Port: 80, Weight: 3, Effective: 3, State: "serving", Flows: 2},
			{Host: "s2", Locator: "fd5d:0:1:102::/64", Proto: "tcp", Port: 80, Weight: 1, State: "suspect", Reason: "3 probes unanswered"},
		}}}}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewAdminHandler(f))
	mux.Handle(apiv1connect.NewLocalHandler(f))
	mux.Handle(apiv1connect.NewSwitchesHandler(f))
	mux.Handle(apiv1connect.NewTrustHandler(f))
	return mux
}

func answer[T any](msg *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(msg), nil
}

// edit looks the service up and lets change have it.
func (f *fake) edit(name string, change func(*apiv1.Service) error) (*connect.Response[apiv1.Service], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.services[name]
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("no service named %q", name))
	}
	return answer(s, change(s))
}

func (f *fake) instance(service, host string, change func(*apiv1.Instance) error) (*connect.Response[apiv1.Service], error) {
	return f.edit(service, func(s *apiv1.Service) error {
		i := slices.IndexFunc(s.Instances, func(i *apiv1.Instance) bool { return i.Host == host })
		if i < 0 {
			return connect.NewError(connect.CodeNotFound, fmt.Errorf("no host named %q", host))
		}
		return change(s.Instances[i])
	})
}

func (f *fake) CreateService(_ context.Context, r *connect.Request[apiv1.CreateServiceRequest]) (*connect.Response[apiv1.Service], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.services[r.Msg.Name] != nil:
		return nil, connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("a service named %q exists", r.Msg.Name))
	case len(r.Msg.Name) > 253:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("service name: %d characters, want at most 253", len(r.Msg.Name)))
	}
	f.services[r.Msg.Name] = &apiv1.Service{Name: r.Msg.Name, Sid: "00000001-0000000000012345", Address: "fd5c:0:0:1::1:2345", Policy: r.Msg.Policy}
	return answer(f.services[r.Msg.Name], nil)
}

func (f *fake) ListServices(context.Context, *connect.Request[apiv1.ListServicesRequest]) (*connect.Response[apiv1.ListServicesResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := &apiv1.ListServicesResponse{}
	for _, s := range f.services {
		all.Services = append(all.Services, s)
	}
	return answer(all, nil)
}

func (f *fake) GetService(_ context.Context, r *connect.Request[apiv1.GetServiceRequest]) (*connect.Response[apiv1.Service], error) {
	return f.edit(r.Msg.Name, func(s *apiv1.Service) error {
		for _, i := range s.Instances {
			if i.State == "draining" && i.Flows > 0 {
				i.Flows--
			}
		}
		return nil
	})
}

func (f *fake) UpdatePolicy(_ context.Context, r *connect.Request[apiv1.UpdatePolicyRequest]) (*connect.Response[apiv1.Service], error) {
	return f.edit(r.Msg.Name, func(s *apiv1.Service) error { s.Policy = r.Msg.Policy; return nil })
}

func (f *fake) SetWeight(_ context.Context, r *connect.Request[apiv1.SetWeightRequest]) (*connect.Response[apiv1.Service], error) {
	return f.instance(r.Msg.Name, r.Msg.Host, func(i *apiv1.Instance) error { i.Weight = r.Msg.Weight; return nil })
}

func (f *fake) SetWeights(_ context.Context, r *connect.Request[apiv1.SetWeightsRequest]) (*connect.Response[apiv1.Service], error) {
	return f.edit(r.Msg.Name, func(s *apiv1.Service) error {
		for _, w := range r.Msg.Weights {
			i := slices.IndexFunc(s.Instances, func(i *apiv1.Instance) bool { return i.Host == w.Host })
			if i < 0 {
				return connect.NewError(connect.CodeNotFound, fmt.Errorf("no host named %q", w.Host))
			}
			s.Instances[i].Weight = w.Weight
		}
		return nil
	})
}

func (f *fake) Drain(_ context.Context, r *connect.Request[apiv1.DrainRequest]) (*connect.Response[apiv1.Service], error) {
	return f.instance(r.Msg.Name, r.Msg.Host, func(i *apiv1.Instance) error {
		if i.Host == "s1" && !r.Msg.Undrain && !r.Msg.Force {
			return connect.NewError(connect.CodeFailedPrecondition, errors.New("s1 is the last host that serves web: --force drains it"))
		}
		i.State = map[bool]string{true: "serving", false: "draining"}[r.Msg.Undrain]
		i.Reason = r.Msg.Mode
		return nil
	})
}

func (f *fake) RemoveService(_ context.Context, r *connect.Request[apiv1.RemoveServiceRequest]) (*connect.Response[apiv1.RemoveServiceResponse], error) {
	_, err := f.edit(r.Msg.Name, func(s *apiv1.Service) error {
		if len(s.Instances) > 0 && !r.Msg.Force {
			return connect.NewError(connect.CodeFailedPrecondition, errors.New("web has 2 instances"))
		}
		delete(f.services, s.Name)
		return nil
	})
	return answer(&apiv1.RemoveServiceResponse{}, err)
}

func (f *fake) GetStatus(context.Context, *connect.Request[apiv1.GetStatusRequest]) (*connect.Response[apiv1.Status], error) {
	return answer(&apiv1.Status{Network: "lab", Domain: "svc", Generation: 7, Services: 1, Instances: 2,
		Space: &apiv1.Space{Services: "fd5c::/32", As: "fd5d:0:1::/48", Identities: "fd5e::/64"}}, nil)
}

// GetHealth finds one of two hosts silent, and web missing once it was removed.
func (f *fake) GetHealth(ctx context.Context, _ *connect.Request[apiv1.GetHealthRequest]) (*connect.Response[apiv1.Health], error) {
	status, err := f.GetStatus(ctx, nil)
	h := &apiv1.Health{Asked: "c1", Role: "controller", Leader: "c1", Status: status.Msg}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.services["web"] == nil {
		h.Problems = append(h.Problems, &apiv1.Problem{Severity: "critical", Kind: "service.unserved", What: "nobody serves service web any more: its clients are refused", Where: "web", Next: "scaffold explain web", Count: 1})
	}
	h.Problems = append(h.Problems, &apiv1.Problem{Severity: "warning", Kind: "host.silent", What: "host s2 does not answer", Where: "s2", Since: "2026-01-01T00:00:00Z", Next: "systemctl start scaffold-hostd  # on s2", Count: 1})
	return answer(h, err)
}

func (f *fake) ListHosts(context.Context, *connect.Request[apiv1.ListHostsRequest]) (*connect.Response[apiv1.ListHostsResponse], error) {
	return answer(&apiv1.ListHostsResponse{Hosts: []*apiv1.Host{
		{Name: "s2", State: "suspect", Locator: "fd5d:0:1:102::/64", Router: "r1", Port: "eth1"},
		{Name: "s1", State: "up", Locator: "fd5d:0:1:101::/64", Router: "r1", Port: "eth0", Cpu: 0.5},
	}}, nil)
}

func (f *fake) GetHost(_ context.Context, r *connect.Request[apiv1.GetHostRequest]) (*connect.Response[apiv1.Host], error) {
	if r.Msg.Name != "s1" {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("no host named %q", r.Msg.Name))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.services["web"].Instances[0]; f.shrink && i.Flows > 0 {
		i.Flows--
	}
	return answer(&apiv1.Host{Name: "s1", State: "up", Instances: f.services["web"].Instances[:1]}, nil)
}

func (f *fake) ListRouters(context.Context, *connect.Request[apiv1.ListRoutersRequest]) (*connect.Response[apiv1.ListRoutersResponse], error) {
	return answer(&apiv1.ListRoutersResponse{Trust: "open", Routers: []*apiv1.Router{{Name: "r1", Service: true, State: "up", Generation: 7,
		Links: []*apiv1.Link{{Port: "eth0", Peer: "s1", Up: true, Cost: 1}, {Port: "eth9", Cost: 1}}}}}, nil)
}

func (f *fake) WatchEvents(_ context.Context, r *connect.Request[apiv1.WatchEventsRequest], s *connect.ServerStream[apiv1.Event]) error {
	for i := range min(2, r.Msg.History) {
		if err := s.Send(&apiv1.Event{Seq: uint64(i), Kind: "host.join", Subject: fmt.Sprint("s", i+1), Text: "joined at r1"}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) ListFlows(context.Context, *connect.Request[apiv1.ListFlowsRequest]) (*connect.Response[apiv1.ListFlowsResponse], error) {
	return answer(&apiv1.ListFlowsResponse{Total: 5, Flows: []*apiv1.Flow{theFlow()}}, nil)
}

func (f *fake) Who(_ context.Context, r *connect.Request[apiv1.WhoRequest]) (*connect.Response[apiv1.Flow], error) {
	if r.Msg.Address != "fd5d::1" {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such flow"))
	}
	return answer(&apiv1.Flow{Id: fakeFlow, Host: "c1", Process: "curl", Pid: 42}, nil)
}

func (f *fake) UpdateAccess(_ context.Context, r *connect.Request[apiv1.UpdateAccessRequest]) (*connect.Response[apiv1.Service], error) {
	return f.edit(r.Msg.Name, func(s *apiv1.Service) error { s.Access = r.Msg.Access; return nil })
}

// Apply knows which services are there and no more; "byhand" was made without files, "taken" is another's, and with "half" the disk is full.
func (f *fake) Apply(_ context.Context, r *connect.Request[apiv1.ApplyRequest]) (*connect.Response[apiv1.ApplyResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	resp := &apiv1.ApplyResponse{}
	for _, s := range r.Msg.Services {
		c := &apiv1.ServiceChange{Name: s.Name, Action: "none"}
		if f.services[s.Name] == nil {
			c.Action, c.Done = "create", !r.Msg.DryRun && s.Name != "half"
			if s.Ready != nil {
				c.Fields = append(c.Fields, &apiv1.FieldChange{Field: "ready", To: *s.Ready})
			}
		}
		switch s.Name {
		case "byhand":
			c.Action, c.Fields = "adopt", nil
		case "taken":
			resp.Problems = append(resp.Problems, &apiv1.SpecProblem{Service: "taken", Text: "service taken belongs to the files of others: use force to take it over", Refused: true})
		case "half":
			resp.Done, resp.Failed = 1, "no space left on device"
		}
		resp.Changes = append(resp.Changes, c)
	}
	for _, s := range r.Msg.BoostSites {
		resp.Changes = append(resp.Changes, &apiv1.ServiceChange{Kind: "boost site", Name: s.Name, Action: "none"})
	}
	for _, e := range r.Msg.BoostEntries {
		resp.Changes = append(resp.Changes, &apiv1.ServiceChange{Kind: "boost entry", Name: e.Name, Action: "create", Done: !r.Msg.DryRun})
		if e.Name == "overlap" {
			resp.Problems = append(resp.Problems, &apiv1.SpecProblem{Kind: "boost entry", Service: "overlap", Field: "port", Text: "have connections in common", Refused: true})
		}
	}
	if len(r.Msg.Services) == 1 && r.Msg.Services[0].Name == "kept" && !r.Msg.DryRun {
		f.services["kept"] = &apiv1.Service{Name: "kept"}
	}
	if r.Msg.Owner == "older" { // as by a controller that has never heard of boost in files
		resp.Changes = slices.DeleteFunc(resp.Changes, func(c *apiv1.ServiceChange) bool { return c.Kind != "" })
	}
	return answer(resp, nil)
}

func (f *fake) Export(context.Context, *connect.Request[apiv1.ExportRequest]) (*connect.Response[apiv1.ExportResponse], error) {
	ready := "tcp"
	return answer(&apiv1.ExportResponse{Services: []*apiv1.ServiceSpec{{Name: "web", Ready: &ready}},
		BoostSites: []*apiv1.BoostSiteSpec{{Name: "east", Prefixes: []string{"192.0.2.0/24"}}}}, nil)
}
