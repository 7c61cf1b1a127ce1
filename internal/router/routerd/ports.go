package routerd

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/host/underlay"
)

// A port is an interface that the router forwards on.
type port struct {
	name    string
	ifindex int
	up      bool // administratively, and with carrier
	ready   bool // its address was there once since it came up
}

// isPort says whether the configuration makes the interface a port.
func (c *Config) isPort(attrs *netlink.LinkAttrs) bool {
	switch attrs.Name {
	case underlay.OwnPort:
		return true
	case underlay.OwnUplink:
		return false
	}
	if len(c.Tunnels) > 0 && attrs.EncapType == "ether" && strings.HasPrefix(attrs.Name, underlay.PortPrefix) {
		return true
	}
	if len(c.Ports) > 0 {
		return slices.Contains(c.Ports, attrs.Name)
	}
	return attrs.EncapType == "ether" && attrs.Name != c.Management
}

// missPorts names the ports that were asked for and are not there: they are used when they come.
func (d *daemon) missPorts() {
	for _, name := range d.cfg.Ports {
		if _, err := net.InterfaceByName(name); err != nil {
			d.log.Warn("port cannot be used; waiting for it", "port", name, "why", "there is no such interface")
		}
	}
}

// link notes what became of an interface.
func (d *daemon) link(update netlink.LinkUpdate) {
	attrs := update.Attrs()
	old := d.ports[attrs.Index]
	if update.Header.Type == unix.RTM_DELLINK || !d.cfg.isPort(attrs) {
		if old != nil {
			d.losePort(old)
		}
		return
	}
	if old != nil && old.name != attrs.Name {
		d.losePort(old)
		old = nil
	}
	now := &port{name: attrs.Name, ifindex: attrs.Index, up: attrs.RawFlags&unix.IFF_LOWER_UP != 0 && attrs.RawFlags&unix.IFF_UP != 0}
	if old != nil && old.up == now.up {
		return
	}
	d.ports[now.ifindex] = now
	if old == nil && d.resolver != nil {
		d.attach(now)
	}
	if now.name == underlay.OwnPort {
		if err := d.besideHost(); err != nil {
			d.log.Error("the host of this machine hides this router from others", "port", now.name, "error", err)
		}
	}
	d.log.Info("port", "name", now.name, "up", now.up)
	d.carrier(now.name, now.up)
}

func (d *daemon) attach(p *port) {
	if err := d.resolver.Attach(p.ifindex); err != nil {
		d.log.Error("first packets that arrive at this port are not resolved, and none is sent after a host that moved", "port", p.name, "error", err)
	}
}

func (d *daemon) losePort(p *port) {
	delete(d.ports, p.ifindex)
	if p.name == underlay.OwnPort {
		if err := d.besideHost(); err != nil {
			d.log.Warn("a rule is left of the host that was behind this router", "error", err)
		}
	}
	if d.resolver != nil {
		if err := d.resolver.Detach(p.ifindex); err != nil {
			d.log.Warn("detach", "port", p.name, "error", err)
		}
	}
	d.log.Info("port", "name", p.name, "up", false, "reason", "the interface is no longer there")
	d.carrier(p.name, false)
}

// carrier tells all who go by a port's state. On the way up the kernel has forgotten the routes.
func (d *daemon) carrier(name string, up bool) {
	if d.prober != nil {
		d.hostChanges(d.prober.carrier(name, up))
	}
	if up {
		if err := d.routes.restore(name); err != nil {
			d.log.Error("restore the routes of a port", "port", name, "error", err)
		}
		d.greet(name)
		d.solicit(name)
	} else {
		d.neighbours.Unplugged(name)
	}
	d.tellNeighbours()
}

func (d *daemon) portNamed(name string) *port {
	for _, p := range d.ports {
		if p.name == name {
			return p
		}
	}
	return nil
}

// delivered reports whether the port's link-local address is there and packets for it are taken. The kernel
// makes the route for that a moment after the address; who answers a HELLO sooner is not heard.
func (p *port) delivered() bool {
	if !p.ready {
		local := &netlink.Route{Table: unix.RT_TABLE_LOCAL, LinkIndex: p.ifindex}
		all, err := netlink.RouteListFiltered(netlink.FAMILY_V6, local, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_OIF)
		p.ready = err != nil || slices.ContainsFunc(all, toLinkLocal)
	}
	return p.ready
}

func toLinkLocal(r netlink.Route) bool { return r.Dst != nil && r.Dst.IP.IsLinkLocalUnicast() }

// routed notes that a port's address has its route: only now can it greet. After a port was off that may be a
// while after its carrier is back.
func (d *daemon) routed(u netlink.RouteUpdate) {
	if p := d.ports[u.LinkIndex]; p != nil && p.up && !p.ready {
		d.greet(p.name)
		d.solicit(p.name)
	}
}

// watchAddresses posts each link-local address that begins to be served, until ctx ends.
func (d *daemon) watchAddresses() error {
	updates := make(chan netlink.RouteUpdate, 64)
	failed := func(err error) {
		if d.ctx.Err() == nil { // else it is our own end
			d.log.Warn("watch of the ports' addresses: hosts may have to wait for the next HELLO", "error", err)
		}
	}
	if err := netlink.RouteSubscribeWithOptions(updates, d.ctx.Done(), netlink.RouteSubscribeOptions{ErrorCallback: failed}); err != nil {
		return fmt.Errorf("watch the ports' addresses: %w", err)
	}
	go func() { // as of watchLinks
		for u := range updates {
			if u.Type == unix.RTM_NEWROUTE && u.Route.Type == unix.RTN_LOCAL && toLinkLocal(u.Route) {
				d.post(func() { d.routed(u) })
			}
		}
	}()
	return nil
}

// watchLinks posts all interfaces that there are, then each change, until ctx ends.
func (d *daemon) watchLinks() error {
	updates := make(chan netlink.LinkUpdate, 64)
	failed := func(err error) {
		if d.ctx.Err() == nil { // as of watchAddresses
			d.log.Warn("watch of the interfaces: some changes may have been missed", "error", err)
		}
	}
	err := netlink.LinkSubscribeWithOptions(updates, d.ctx.Done(), netlink.LinkSubscribeOptions{ListExisting: true, ErrorCallback: failed})
	if err != nil {
		return fmt.Errorf("watch the interfaces: %w", err)
	}
	go func() { // ends when the subscription closes updates, after ctx has ended
		for u := range updates {
			d.post(func() { d.link(u) })
		}
		if d.ctx.Err() == nil {
			d.fail(fmt.Errorf("the kernel no longer tells of changes of interfaces"))
		}
	}()
	return nil
}
