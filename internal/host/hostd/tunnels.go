package hostd

import "scaffold.dev/scaffold/internal/host/tunnels"

// openTunnels takes over the tunnels of an earlier daemon, and removes those that nobody asks for any more.
func (d *daemon) openTunnels() (err error) {
	d.tunnels, err = tunnels.Open(tunnels.Config{
		Log: d.log, Host: d.cfg.Name, WireGuard: d.cfg.WireGuard, BootID: d.bootID, Netns: d.netns, Files: d.store,
		Controllers: d.controllers, TLS: d.credentials.TLS, Key: d.keys.Now,
		Post: d.post, Changed: func() { d.uplinks.Changed(nil) }, Resized: func() { d.uplinks.Changed(nil); d.joining.Attend() },
	}, d.cfg.tunnels, d.cfg.auto)
	for _, u := range d.uplinks.All() {
		if t := d.tunnels.At(u.Name); t != nil {
			u.Tunnel = t
		}
	}
	return err
}
