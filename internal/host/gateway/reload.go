package gateway

import (
	"errors"
	"fmt"
	"slices"
)

// errNothing is of a gateway whose configuration is its command line.
var errNothing = errors.New("there is no file to read again: the gateway was started without --config")

// reload reads the configuration again and does what differs. Flows that are there keep what they began with;
// after an error nothing has changed.
func (g *Gateway) reload() error {
	if g.exiting {
		return errEnding
	}
	old := g.cfg.Load()
	if old.Reload == nil {
		return errNothing
	}
	cfg, err := old.Reload()
	if err != nil {
		return err
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	if cfg.Socket != old.Socket || cfg.HTTP != old.HTTP || cfg.Daemon != old.Daemon {
		return fmt.Errorf("socket, http and daemon cannot change while it runs: start the next gateway with --takeover")
	}
	cfg.Reload, cfg.TakeOver = old.Reload, old.TakeOver
	return g.apply(&cfg)
}

// apply opens what is new before it closes what is gone.
func (g *Gateway) apply(cfg *Config) error {
	want := map[socket]Listen{}
	var add []*door
	for _, l := range cfg.listens {
		for _, at := range l.sockets() {
			want[at] = l
			if g.state == closed || slices.ContainsFunc(g.doors, func(d *door) bool { return d.at == at }) {
				continue
			}
			d, err := g.open(at, l, nil)
			if err != nil {
				shut(add)
				return err
			}
			add = append(add, d)
		}
	}
	g.cfg.Store(cfg)
	g.room.resize(cfg.room())
	g.crowd.resize(cfg.PerClient)
	kept, gone := g.sort(want)
	for _, d := range kept {
		d.change(want[d.at])
	}
	g.admit(add)
	g.closeDoors(gone)
	g.log.Info("reloaded", "kept", len(kept), "opened", len(add), "closed", len(gone))
	g.report("gateway.reload", fmt.Sprintf("now for %s", g.targets()))
	return nil
}

// sort tells the doors that stay from those that are not wanted any more.
func (g *Gateway) sort(want map[socket]Listen) (kept, gone []*door) {
	for _, d := range g.doors {
		if _, ok := want[d.at]; ok {
			kept = append(kept, d)
		} else {
			gone = append(gone, d)
		}
	}
	return kept, gone
}
