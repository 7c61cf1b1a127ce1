package hostd

import (
	"fmt"
	"os"
	"path/filepath"

	"scaffold.dev/scaffold/internal/host/routing"
	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/linux/private"
)

// routerHere reports whether a router works in this network namespace: its daemon runs, or is being restarted and has
// left its part of the kernel.
func (d *daemon) routerHere() (bool, error) {
	if _, err := os.Stat(filepath.Join(d.cfg.BPFFS, fmt.Sprintf("router-%d", d.netns))); err == nil {
		return true, nil
	}
	return private.Held("routerd")
}

// layOwn makes the cable where a router is here, and takes one away that leads to no router any more.
func (d *daemon) layOwn() error {
	here, err := d.routerHere()
	if err != nil {
		return fmt.Errorf("look whether a router runs on this machine: %w", err)
	}
	if !here {
		return underlay.RemoveOwn()
	}
	auto := len(d.cfg.Uplinks) == 1 && (d.cfg.Uplinks[0] == AutoUplink || d.cfg.Uplinks[0] == underlay.OwnUplink)
	if !auto {
		return fmt.Errorf("uplink %v: this machine is a router (routerd), and its host joins by that one alone: leave --uplink out, or stop the router first", d.cfg.Uplinks)
	}
	if err := underlay.MakeOwn(); err != nil {
		return err
	}
	if err := d.takeDemux(); err != nil {
		return err
	}
	d.cfg.Uplinks, d.cfg.beside = []string{underlay.OwnUplink}, true
	d.log.Info("a router runs on this machine: the host is behind it", "uplink", underlay.OwnUplink, "port", underlay.OwnPort)
	return nil
}

// takeDemux has packets for connected sockets of UDP routed first.
func (d *daemon) takeDemux() (err error) {
	d.demux, err = routing.TakeEarlyDemux()
	return err
}

// giveBackDemux puts that back as it was, if that is due.
func (d *daemon) giveBackDemux(due bool) {
	if due && d.demux != "" {
		routing.GiveBackEarlyDemux(d.demux)
		d.demux = ""
	}
}
