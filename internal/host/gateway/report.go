package gateway

import (
	"cmp"
	"context"
	"os"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold"
	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// reportLimit is how long the host's daemon may take to hear an event: flows do not wait for it.
const reportLimit = time.Second

// report puts an event into the network's history, by way of the host's daemon. Where none answers there is
// the log.
func (g *Gateway) report(kind, text string) {
	g.log.Info(kind, "text", text)
	endpoint := cmp.Or(g.cfg.Load().Daemon, os.Getenv("SCAFFOLD_API"), scaffold.DefaultDaemon)
	client, base, err := api.Dial(endpoint)
	if err != nil {
		return // the configuration was checked
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), reportLimit)
	defer cancel()
	e := &apiv1.Event{UnixMs: time.Now().UnixMilli(), Kind: kind, Text: text}
	if _, err := apiv1connect.NewLocalClient(client, base).Report(ctx, connect.NewRequest(&apiv1.ReportRequest{Event: e})); err != nil {
		g.log.Debug("the event is in this log alone", "kind", kind, "error", err)
	}
}
