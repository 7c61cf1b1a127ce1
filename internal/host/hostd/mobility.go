package hostd

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/host/mobility"
)

// newSessions is the flows' side of the daemon, and what it asks of the other sides.
func (d *daemon) newSessions() *mobility.Sessions {
	return mobility.New(d.ctx, mobility.Config{
		Log: d.log, Post: d.post, Waiting: func() int { return len(d.inbox) }, Flows: func() uint32 { return d.load.flows }, Journal: d.journal,
		Places: d.places, Serving: d.serving, Controller: inquiries{d}, Meter: &d.metrics,
	})
}

// inquiries are what the flows' side asks the controller, and tells it.
type inquiries struct{ d *daemon }

// othersLimit bounds how long the answer takes.
const othersLimit = 2 * time.Second

// Others asks whether others serve the same.
func (i inquiries) Others(ctx context.Context, q mobility.Question) (bool, error) {
	_, client, _ := i.d.control.current()
	if client == nil {
		return false, errors.New("no way to the controller yet")
	}
	ctx, cancel := context.WithTimeout(ctx, othersLimit)
	defer cancel()
	t := q.Triple
	resp, err := apiv1connect.NewAgentClient(client, api.BaseURL()).Others(ctx, connect.NewRequest(&apiv1.OthersRequest{
		Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port), Besides: uint64(q.Besides)}))
	if err != nil {
		return false, err
	}
	return resp.Msg.There, nil
}

// AskPolicy asks for the policy of a service, which is learned where there is an answer.
func (i inquiries) AskPolicy(ctx context.Context, service netip.Addr) {
	i.d.names.Ask(ctx, &apiv1.ResolveRequest{Address: service.String()}) //nolint:errcheck // learned where it succeeds
}

// Report is an event of this host for the network's history.
func (i inquiries) Report(kind, text string, attrs map[string]string) { i.d.report(kind, text, attrs) }

func (d *daemon) report(kind, text string, attrs map[string]string) {
	d.control.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Event{Event: &apiv1.Event{
		UnixMs: time.Now().UnixMilli(), Kind: kind, Subject: d.cfg.Name, Text: text, Attrs: attrs,
	}}})
}
