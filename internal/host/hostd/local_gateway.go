package hostd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/naming"
)

// LookUp finds a service as DNS does, from memory while the controller is away.
func (l *local) LookUp(ctx context.Context, req *connect.Request[apiv1.LookUpRequest]) (*connect.Response[apiv1.ResolveResponse], error) {
	n := l.d.names
	label := strings.TrimSuffix(strings.ToLower(req.Msg.Name), ".")
	label = strings.TrimSuffix(label, "."+strings.TrimSuffix(n.Suffix(), "."))
	a, err := n.LookUp(ctx, label, &apiv1.ResolveRequest{Name: label})
	switch {
	case errors.Is(err, naming.ErrUnknown):
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no service %q", req.Msg.Name))
	case err != nil:
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	return connect.NewResponse(&apiv1.ResolveResponse{Name: a.Name, Address: a.Address.String(), TtlSeconds: a.TTL}), nil
}

// programEvents is what programs of this host may tell.
const programEvents = "gateway."

// Report passes on what a program of this host has to tell.
func (l *local) Report(ctx context.Context, req *connect.Request[apiv1.ReportRequest]) (*connect.Response[apiv1.ReportResponse], error) {
	e := req.Msg.Event
	if !strings.HasPrefix(e.GetKind(), programEvents) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("event of kind %.80q: want one of gateways", e.GetKind()))
	}
	report := &apiv1.HostReport{Report: &apiv1.HostReport_Event{Event: e}}
	if !l.d.call(ctx, func() { l.d.control.Send(report) }) {
		return nil, errLeaving
	}
	return connect.NewResponse(&apiv1.ReportResponse{}), nil
}
