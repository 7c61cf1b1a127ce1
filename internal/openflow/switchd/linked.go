package switchd

import (
	"context"
	"fmt"
	"sync"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// linked are all modules of a daemon: its own, and those of Config.
type linked struct {
	*modules
	directory *directory
	join      *join
	operators *operators
	hangUp    func()
}

// newModules makes the modules the audience of the daemon's switches.
func (d *daemon) newModules() (*linked, error) {
	endpoint, err := api.ParseEndpoint(d.cfg.Controller)
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	relayed := endpoint
	if d.cfg.Relay != "" {
		if relayed, err = api.ParseEndpoint(d.cfg.Relay); err != nil {
			return nil, fmt.Errorf("relay: %w", err)
		}
	}
	client, base, err := api.Dial(d.cfg.Controller)
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	l := &linked{directory: newDirectory(apiv1connect.NewAdminClient(client, base)), join: newJoin(relayed, d.keys, d.log), hangUp: client.CloseIdleConnections}
	l.modules = newModules(d, l.directory, d.notes, d.log)
	l.operators = newOperators(recordKeeper{apiv1connect.NewAgentClient(client, base)}, l.flows)
	d.audience = l.modules
	if err := l.add(ownJoin, l.join); err != nil {
		return nil, err
	}
	if err := l.add(ownLinks, newDiscoverer()); err != nil {
		return nil, err
	}
	if err := l.add(ownDistant, newDistant(d.cfg.Links)); err != nil {
		return nil, err
	}
	if err := l.add(ownOperator, l.operators); err != nil {
		return nil, err
	}
	if d.cfg.Steering != nil {
		if err := l.add(ownSteering, d.cfg.Steering); err != nil {
			return nil, err
		}
	}
	for i, m := range d.cfg.Modules {
		if err := l.add(ownOthers+owner(i), m); err != nil {
			return nil, err
		}
	}
	for _, m := range l.all {
		if _, keeps := m.code.(controller.Keeper); keeps {
			d.keepers = append(d.keepers, m.of)
		}
	}
	return l, nil
}

func (l *linked) run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { l.directory.run(ctx, l.hostChanged) })
	all.Go(func() { l.modules.run(ctx) })
	all.Wait()
}

// serve opens the answerer, and exports metrics.
func (l *linked) serve(k *OperatorAPI, m *obs.Metrics) {
	d := &answerer{plane: l.plane, modules: l.modules, directory: l.directory, operators: l.operators}
	if k != nil {
		k.open.Store(d)
	}
	if m != nil {
		d.export(m)
	}
}

// close lets go of what the modules hold.
func (l *linked) close() {
	l.join.Close()
	l.hangUp()
}
