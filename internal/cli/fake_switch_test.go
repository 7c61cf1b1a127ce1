package cli

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func (f *fake) GetPath(_ context.Context, r *connect.Request[apiv1.GetPathRequest]) (*connect.Response[apiv1.Path], error) {
	if r.Msg.To == "nobody" {
		return nil, connect.NewError(connect.CodeNotFound, errors.New(`"nobody": no such host or router`))
	}
	return answer(&apiv1.Path{Cost: 2, Hops: []*apiv1.Hop{{Router: "r1", In: "eth0", Out: "eth1"}, {Router: "sw", In: "to-r1"}}}, nil)
}

// theSwitch is the only one that is there.
func (f *fake) theSwitch(name string) (*apiv1.Switch, error) {
	if name != "sw" {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("switch %q: no such switch", name))
	}
	return &apiv1.Switch{
		Name: "sw", Datapath: "0000025caf000003", Version: "1.5", State: "up", Address: "[fd5f::3]:1", Mac: "02:5c:af:00:00:03",
		Generation: 1<<32 | 4, Flows: 42, Groups: 1, Meters: 15, Connects: 2, PacketIns: map[string]uint64{"scaffold": 5, "module join": 7},
		Ports:  []*apiv1.SwitchPort{{Name: "to-r1", Number: 1, Up: true, RxPackets: 24, TxBytes: 2655, RxDropped: 1, TxDropped: 2}},
		Shares: []*apiv1.ServiceShare{{Service: "web", Proto: "tcp", Port: 80, Instances: []*apiv1.InstanceShare{{Host: "s1", Locator: "fd5d:0:1:101::/64", Weight: 1, Share: 0.332}}}},
	}, nil
}

func (f *fake) ListSwitches(context.Context, *connect.Request[apiv1.ListSwitchesRequest]) (*connect.Response[apiv1.ListSwitchesResponse], error) {
	s, _ := f.theSwitch("sw")
	return answer(&apiv1.ListSwitchesResponse{Switches: []*apiv1.Switch{s, {Name: "old", State: "gone", Trouble: "it refused"}}}, nil)
}

func (f *fake) GetSwitch(_ context.Context, r *connect.Request[apiv1.GetSwitchRequest]) (*connect.Response[apiv1.Switch], error) {
	return answer(f.theSwitch(r.Msg.Name))
}

func (f *fake) ListSwitchFlows(_ context.Context, r *connect.Request[apiv1.ListSwitchFlowsRequest]) (*connect.Response[apiv1.ListSwitchFlowsResponse], error) {
	_, err := f.theSwitch(r.Msg.Name)
	list := &apiv1.ListSwitchFlowsResponse{}
	for _, x := range append([]*apiv1.SwitchFlow{{Table: 10, Priority: 20, Match: "any", Actions: "goto_table:11", Owner: "scaffold", Packets: 3, AgeMs: 90000}}, f.flows...) {
		if r.Msg.Owner == "" || r.Msg.Owner == x.Owner {
			list.Flows = append(list.Flows, x)
		}
	}
	return answer(list, err)
}

func (f *fake) AddSwitchFlow(_ context.Context, r *connect.Request[apiv1.AddSwitchFlowRequest]) (*connect.Response[apiv1.SwitchFlow], error) {
	_, err := f.theSwitch(r.Msg.Name)
	if r.Msg.Actions == "output:eth9" {
		err = connect.NewError(connect.CodeInvalidArgument, errors.New(`actions "output:eth9": the switch has no port "eth9": it has to-r1`))
	}
	if err != nil {
		return nil, err
	}
	x := &apiv1.SwitchFlow{Priority: r.Msg.Priority, Match: r.Msg.Match, Actions: r.Msg.Actions, Owner: "operator", Number: uint32(len(f.flows) + 1)}
	if r.Msg.First {
		x.Trouble = "the switch does not have it yet"
	}
	f.flows = append(f.flows, x)
	return answer(x, nil)
}

func (f *fake) RemoveSwitchFlow(_ context.Context, r *connect.Request[apiv1.RemoveSwitchFlowRequest]) (*connect.Response[apiv1.RemoveSwitchFlowResponse], error) {
	if int(r.Msg.Number) > len(f.flows) {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such flow"))
	}
	f.flows = nil
	return answer(&apiv1.RemoveSwitchFlowResponse{}, nil)
}
