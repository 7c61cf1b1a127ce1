package hostd

import (
	"context"
	"net/http"
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/naming"
)

// namesFile is the file of names that are known.
const namesFile = "names.json"

// newNames are the answers to DNS, and what they need of the other sides.
func (d *daemon) newNames() *naming.Names {
	return naming.New(d.ctx, naming.Config{
		Log: d.log, Listen: d.cfg.DNS, ResolvConf: d.cfg.ResolvConf, Answered: d.metrics.answered,
		Load: func(s *naming.Saved) bool { return d.store.Read(namesFile, s) },
		Save: func(s naming.Saved) error { return d.store.WriteJSON(namesFile, s) },
		Controller: func() *http.Client {
			_, client, _ := d.control.current()
			return client
		},
		Learn: func(ctx context.Context, service netip.Addr, p *apiv1.Policy) {
			d.call(ctx, func() { d.serving.Learn(service, p) })
		},
	})
}
