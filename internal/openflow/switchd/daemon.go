package switchd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/router/agent"
)

// A daemon is what all switches have in common.
type daemon struct {
	cfg      Config // constant
	log      *slog.Logger
	ctx      context.Context
	keys     *agent.LinkKeys // that of all switches
	listed   func()          // the keys of other routers are others
	audience audience
	registry registry
	records  records
	notes    *notes
	wishes   wishes
	keepers  []owner // constant
	pace     pace
}

// Run drives the switches that connect, until ctx ends. What it put into them stays there: they forward by it,
// and the next one finds it. An error means that it could not begin.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	asked := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	d := &daemon{cfg: cfg, keys: agent.NewLinkKeys(), log: log, ctx: ctx, notes: newNotes(log), pace: pace{most: cfg.ProbesMax}}
	modules, err := d.newModules()
	if err != nil {
		return err
	}
	defer modules.close()
	d.listed = modules.join.listed
	modules.serve(cfg.OperatorAPI, cfg.Metrics)
	var listeners []net.Listener
	for _, target := range cfg.Listen {
		l, err := ofconn.Listen(ctx, target, cfg.TLS)
		if err != nil {
			for _, open := range listeners {
				open.Close()
			}
			return fmt.Errorf("wait for OpenFlow switches: %w", err)
		}
		listeners = append(listeners, l)
		log.Info("waiting for OpenFlow switches", "at", l.Addr())
	}
	var all sync.WaitGroup
	all.Go(func() { d.notes.run(ctx, cfg.Controller) })
	all.Go(func() { modules.run(ctx) })
	modules.operators.load(ctx) // before any switch is compared with what it should hold
	for _, l := range listeners {
		all.Go(func() {
			ofconn.Serve(ctx, l, ofconn.Config{Silence: cfg.Silence, PacketIns: packetIns, Events: events}, d)
		})
	}
	all.Go(func() {
		<-asked.Done()
		if cfg.Release {
			d.release()
		}
		cancel()
	})
	all.Wait()
	return nil
}

// How much of a switch may wait: packets, and other news. All flows of an owner may end at once, and each tells so.
const (
	packetIns = 16384
	events    = 2 * maxOwnFlows
)

// report puts a line into the network's events.
func (d *daemon) report(kind, subject, text string) {
	d.notes.event(kind, subject, text)
}
