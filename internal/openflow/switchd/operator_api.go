package switchd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/openflow/oftables"
)

// A OperatorAPI answers what operators ask of switches. It is served before Run begins, and says so until then.
type OperatorAPI struct{ open atomic.Pointer[answerer] }

// Mount is the service to be served with the controller's API.
func (k *OperatorAPI) Mount() api.Mount {
	path, handler := apiv1connect.NewSwitchesHandler(switchesAPI{answerer: k})
	return api.Mount{Path: path, Handler: handler}
}

// A answerer is what the answers come from.
type answerer struct {
	plane     plane
	modules   *modules
	directory called
	operators *operators
}

// called is how people call hosts and services.
type called interface {
	hostAt(locator string) string
	serviceName(id string) string
}

var errNoSwitch = errors.New("no such switch")

// askTime is how long a switch may take to answer.
const askTime = 5 * time.Second

type switchesAPI struct {
	apiv1connect.UnimplementedSwitchesHandler
	answerer *OperatorAPI
}

func (a switchesAPI) get() (*answerer, error) {
	if d := a.answerer.open.Load(); d != nil {
		return d, nil
	}
	return nil, connect.NewError(connect.CodeUnavailable, errors.New("the controller has not begun to drive switches: try again"))
}

// answer gives errors the codes that the command line makes exit codes of.
func answer[T any](msg *T, err error) (*connect.Response[T], error) {
	var known *connect.Error
	var bad badFlow
	switch {
	case err == nil:
		return connect.NewResponse(msg), nil
	case errors.As(err, &known):
		return nil, err
	case errors.Is(err, errNoSwitch), errors.Is(err, errNoFlow):
		return nil, connect.NewError(connect.CodeNotFound, err)
	case errors.As(err, &bad):
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return nil, connect.NewError(connect.CodeUnavailable, err)
}

// ListSwitches lists the switches that came since the start, by name.
func (a switchesAPI) ListSwitches(_ context.Context, _ *connect.Request[apiv1.ListSwitchesRequest]) (*connect.Response[apiv1.ListSwitchesResponse], error) {
	d, err := a.get()
	if err != nil {
		return nil, err
	}
	list := new(apiv1.ListSwitchesResponse)
	for _, c := range d.plane.conditions() {
		list.Switches = append(list.Switches, d.describe(c))
	}
	return answer(list, nil)
}

// GetSwitch shows one switch.
func (a switchesAPI) GetSwitch(ctx context.Context, req *connect.Request[apiv1.GetSwitchRequest]) (*connect.Response[apiv1.Switch], error) {
	d, err := a.get()
	if err != nil {
		return nil, err
	}
	c, err := d.condition(req.Msg.Name)
	if err != nil {
		return answer[apiv1.Switch](nil, err)
	}
	s := d.describe(c)
	if err := d.ports(ctx, c, s); err != nil && s.Trouble == "" {
		s.Trouble = err.Error()
	}
	for _, x := range d.plane.shares(c.Name) {
		s.Shares = append(s.Shares, d.share(x))
	}
	return answer(s, nil)
}

func (d *answerer) condition(name string) (condition, error) {
	for _, c := range d.plane.conditions() {
		if c.Name == name {
			return c, nil
		}
	}
	return condition{}, fmt.Errorf("switch %.80q: %w", name, errNoSwitch)
}

func (d *answerer) describe(c condition) *apiv1.Switch {
	s := &apiv1.Switch{
		Name: c.Name, Datapath: fmt.Sprintf("%016x", c.Datapath), Version: c.Version, State: "gone", Address: c.Address,
		Mac: controller.MAC(c.MAC).String(), Generation: c.Generation, Flows: uint32(c.Flows), Groups: uint32(c.Groups), Meters: uint32(c.Meters),
		Connects: c.Connects, Dropped: c.Dropped, Errors: c.Errors, Bundles: c.Bundles, ReconcileSeconds: c.Reconciled.Seconds(),
		Trouble: c.Trouble, PacketIns: make(map[string]uint64),
	}
	if c.Up {
		s.State = "up"
	}
	if !c.Since.IsZero() {
		s.SinceUnixMs = c.Since.UnixMilli()
	}
	if c.Locator.IsValid() {
		s.Locator = c.Locator.String()
	}
	if c.LinkLocal.IsValid() {
		s.LinkLocal = c.LinkLocal.String()
	}
	for of, n := range c.PacketIns {
		s.PacketIns[d.modules.ownerName(of)] = n
	}
	return s
}

func (d *answerer) share(x share) *apiv1.ServiceShare {
	s := &apiv1.ServiceShare{Service: d.directory.serviceName(x.Of.Service.String()), Port: uint32(x.Of.Port)}
	if x.Of.Proto != 0 {
		s.Proto = x.Of.Proto.String()
	}
	for _, t := range x.Targets {
		locator := t.Locator.String()
		s.Instances = append(s.Instances, &apiv1.InstanceShare{Host: d.directory.hostAt(locator), Locator: locator, Weight: t.Weight, Share: t.Share})
	}
	return s
}

// ListSwitchFlows reads a switch's tables.
func (a switchesAPI) ListSwitchFlows(ctx context.Context, req *connect.Request[apiv1.ListSwitchFlowsRequest]) (*connect.Response[apiv1.ListSwitchFlowsResponse], error) {
	d, err := a.get()
	if err != nil {
		return nil, err
	}
	c, err := d.condition(req.Msg.Name)
	if err != nil {
		return answer[apiv1.ListSwitchFlowsResponse](nil, err)
	}
	all, err := d.flowsOf(ctx, c)
	if err != nil {
		return answer[apiv1.ListSwitchFlowsResponse](nil, err)
	}
	all = slices.DeleteFunc(all, func(f *apiv1.SwitchFlow) bool { return req.Msg.Owner != "" && f.Owner != req.Msg.Owner })
	slices.SortStableFunc(all, func(x, y *apiv1.SwitchFlow) int {
		return cmp.Or(cmp.Compare(x.Table, y.Table), cmp.Compare(y.Priority, x.Priority))
	})
	return answer(&apiv1.ListSwitchFlowsResponse{Flows: all}, nil)
}

// ownerOf says whose a rule is, by its cookie.
func (d *answerer) ownerOf(cookie uint64) (name string, number uint32) {
	of, id, ours := oftables.Punted(cookie)
	switch {
	case !ours:
		return "other", 0
	case owner(of) == ownOperator:
		return "operator", id
	}
	return d.modules.ownerName(owner(of)), 0
}

// AddSwitchFlow adds a flow of the operator's and waits a moment until the switch has it.
func (a switchesAPI) AddSwitchFlow(ctx context.Context, req *connect.Request[apiv1.AddSwitchFlowRequest]) (*connect.Response[apiv1.SwitchFlow], error) {
	d, err := a.get()
	if err != nil {
		return nil, err
	}
	m := req.Msg
	if m.Priority > controller.MaxPriority {
		return answer[apiv1.SwitchFlow](nil, badFlow{fmt.Errorf("priority %d: at most %d", m.Priority, controller.MaxPriority)})
	}
	f, err := d.operators.add(ctx, keptFlow{at: m.Name, match: m.Match, actions: m.Actions, priority: uint16(m.Priority), first: m.First})
	if err != nil {
		return answer[apiv1.SwitchFlow](nil, err)
	}
	return answer(d.settled(ctx, f), nil)
}

// How often, and how many times, a switch is looked at until it has a flow.
const (
	settleEvery = 50 * time.Millisecond
	settleTimes = 20
)

// settled waits until the switch has the flow, and says so if it does not come.
func (d *answerer) settled(ctx context.Context, f keptFlow) *apiv1.SwitchFlow {
	for range settleTimes {
		if c, err := d.condition(f.at); err != nil || !c.Up {
			break
		}
		if has, err := d.has(ctx, f); has || err != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(settleEvery):
		}
	}
	s := &apiv1.SwitchFlow{Priority: uint32(f.priority), Match: f.match, Actions: f.actions, Owner: "operator", Number: f.number}
	if has, _ := d.has(ctx, f); !has {
		s.Trouble = "the switch does not have it yet: it is away or refuses it; scaffold events tells"
	}
	return s
}

// RemoveSwitchFlow forgets a flow of the operator's.
func (a switchesAPI) RemoveSwitchFlow(ctx context.Context, req *connect.Request[apiv1.RemoveSwitchFlowRequest]) (*connect.Response[apiv1.RemoveSwitchFlowResponse], error) {
	d, err := a.get()
	if err != nil {
		return nil, err
	}
	return answer(new(apiv1.RemoveSwitchFlowResponse), d.operators.remove(ctx, req.Msg.Name, req.Msg.Number))
}
