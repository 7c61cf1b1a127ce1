package hostd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/miekg/dns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/sid"
)

// A guest is a network namespace that is up behind this host's edge. Its link is for this alone: what else it has
// of interfaces, a runtime's for instance, is left as it is.
type guest struct {
	*guestRecord
	d        *daemon
	ns       namespace
	identity netip.Addr
	alone    io.Closer // no hostd of its own begins meanwhile
	link     int       // here, that leads to it
	mtu      int
	kernel   kernel // in it
	diag     *sockets.Diag
	socks    *sockets.Host
	readers  chan struct{}
	servers  []*dns.Server
	kicker   *kick.Kicker
	mute     string // why it finds no names
}

const (
	// guestDev is the guest's end of the link.
	guestDev = "scaffold0"
	// fewGuestBytes is the least that IPv6 needs.
	fewGuestBytes = 1280
)

// guestGateway is the host's end of each link, as guests see it: it has no address there, the neighbour is set.
var guestGateway = netip.MustParseAddr("fe80::1")

func (x *guest) dev() string { return linkOf(x.guestRecord) }

// linkOf is the host's end of a guest's link.
func linkOf(r *guestRecord) string { return fmt.Sprintf("scg%d", r.Number) }

// raise sets all up; what fails is undone by lower.
func (x *guest) raise() error {
	x.kernel.log = x.d.log
	for _, step := range []func() error{x.enter, x.cable, x.furnish, x.attach, x.listen} {
		if err := step(); err != nil {
			return err
		}
	}
	x.openNames()
	return nil
}

// enter takes the namespace, if nothing in it is in the way.
func (x *guest) enter() error {
	return x.ns.do(func() (err error) {
		if x.alone, err = api.Alone("hostd"); errors.Is(err, api.ErrRunning) {
			return errors.New("a hostd is its edge already: one of its own, or another host's of this machine")
		}
		if err != nil {
			return err
		}
		if err := x.conflict(); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err != nil {
			return fmt.Errorf("bring up lo: %w", err)
		}
		if err := x.openLoopback(); err != nil {
			return err
		}
		before, err := allowNonlocalBind()
		if x.Nonlocal == "" {
			x.Nonlocal = before
		}
		return err
	})
}

const loopbackOff = "/proc/sys/net/ipv6/conf/lo/disable_ipv6"

// openLoopback gives the guest IPv6 on its loopback: runtimes whose networks have none turn it off everywhere.
func (x *guest) openLoopback() error {
	b, err := os.ReadFile(loopbackOff)
	if err != nil {
		return fmt.Errorf("IPv6 is not in this kernel, or /proc/sys is closed: %w", err)
	}
	if b[0] != '1' {
		return nil
	}
	x.Closed = true
	if err := os.WriteFile(loopbackOff, []byte("0"), 0); err != nil {
		return fmt.Errorf("turn IPv6 on at its loopback: %w", err)
	}
	return nil
}

// conflict looks for addresses of the network that something else gave the guest.
func (x *guest) conflict() error {
	all, err := netlink.AddrList(nil, netlink.FAMILY_V6)
	if err != nil {
		return fmt.Errorf("list its addresses: %w", err)
	}
	space := x.d.home.Space
	for _, a := range all {
		at, _ := netip.AddrFromSlice(a.IP)
		l, err := netlink.LinkByIndex(a.LinkIndex)
		if err != nil || l.Attrs().Name == guestDev {
			continue
		}
		for _, p := range []netip.Prefix{space.Services, space.AS, space.Identities} {
			if p.Contains(at) {
				return fmt.Errorf("it has the address %v on %s, in the network's own prefix %v: take it away first", at, l.Attrs().Name, p)
			}
		}
	}
	return nil
}

// cable makes the link, or finds that of a daemon before this one.
func (x *guest) cable() error {
	if x.cabled() {
		return nil
	}
	if err := x.ns.do(func() error { return absent(guestDev) }); err != nil {
		return err
	}
	removeLink(x.guestRecord)
	x.mtu = max(x.d.guests.mtu(), fewGuestBytes)
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: x.dev(), MTU: x.mtu}, PeerName: guestDev, PeerMTU: uint32(x.mtu),
		PeerNamespace: netlink.NsFd(x.ns.file.Fd()),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		if errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("this kernel makes no veth pairs: %w (modprobe veth)", err)
		}
		return fmt.Errorf("make the link %s to it: %w", x.dev(), err)
	}
	l, err := netlink.LinkByName(x.dev())
	if err != nil {
		return err
	}
	x.link = l.Attrs().Index
	netlink.LinkSetAlias(l, aliasOf(x.guestRecord)) //nolint:errcheck // for people
	// Nothing of it reaches this namespace's own stack, and nothing of this one goes there.
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+x.dev()+"/disable_ipv6", []byte("1"), 0); err != nil {
		return fmt.Errorf("close the link %s to the host itself: %w", x.dev(), err)
	}
	return netlink.LinkSetUp(l)
}

func aliasOf(r *guestRecord) string { return "scaffold guest " + r.Name }

// absent reports an interface of somebody else that has the name of ours.
func absent(dev string) error {
	if _, err := netlink.LinkByName(dev); err == nil {
		return fmt.Errorf("it has an interface %s already, which is not this daemon's: remove it first", dev)
	}
	return nil
}

// cabled reports whether both ends of the link are there.
func (x *guest) cabled() bool {
	here, err := netlink.LinkByName(x.dev())
	if err != nil || here.Type() != "veth" || here.Attrs().Alias != aliasOf(x.guestRecord) {
		return false
	}
	err = x.ns.do(func() error {
		there, err := netlink.LinkByName(guestDev)
		if err == nil && (there.Attrs().ParentIndex != here.Attrs().Index || here.Attrs().ParentIndex != there.Attrs().Index) {
			return errors.New("another link")
		}
		return err
	})
	x.link, x.mtu = here.Attrs().Index, here.Attrs().MTU
	return err == nil
}

// furnish gives the guest its address, routes and rules.
func (x *guest) furnish() error {
	here, err := netlink.LinkByIndex(x.link)
	if err != nil {
		return err
	}
	return x.ns.do(func() error {
		l, err := netlink.LinkByName(guestDev)
		if err != nil {
			return err
		}
		for key, value := range map[string]string{"disable_ipv6": "0", "addr_gen_mode": "1", "accept_ra": "0", "accept_dad": "0"} {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+guestDev+"/"+key, []byte(value), 0); err != nil {
				return fmt.Errorf("set %s of %s: %w", key, guestDev, err)
			}
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return fmt.Errorf("bring up %s: %w", guestDev, err)
		}
		if err := x.kernel.want(x.items(l.Attrs().Index, here.Attrs().HardwareAddr)); err != nil {
			return fmt.Errorf("set up its routes and addresses: %w", err)
		}
		return nil
	})
}

// items is the set-up of a guest; what hangs on its link goes with it.
func (x *guest) items(link int, gateway net.HardwareAddr) []item {
	space := x.d.home.Space
	to := func(dst netip.Prefix) item {
		return route(netlink.Route{
			LinkIndex: link, Dst: ipNet(dst), Gw: guestGateway.AsSlice(), Src: x.identity.AsSlice(), Priority: metric, Flags: int(netlink.FLAG_ONLINK),
			RtoMin: rtoMin, RtoMinLock: true, QuickACK: 1, Table: unix.RT_TABLE_MAIN, Type: unix.RTN_UNICAST,
		}, fmt.Sprintf("route %v dev %s src %v", dst, guestDev, x.identity))
	}
	return []item{
		address(link, x.identity, guestDev),
		neighbour(link, gateway),
		localRoute(space.Services),
		localRoute(whole(x.identity)),
		rule(netlink.Rule{Mark: LocalMark, Priority: table - 1}, fmt.Sprintf("rule fwmark %#x lookup %d", LocalMark, table)),
		rule(netlink.Rule{IifName: guestDev, Priority: table}, fmt.Sprintf("rule iif %s lookup %d", guestDev, table)),
		to(space.AS),
		to(space.Services),
	}
}

// neighbour makes the gateway known without asking: nothing at the other end answers.
func neighbour(link int, mac net.HardwareAddr) item {
	n := &netlink.Neigh{LinkIndex: link, IP: guestGateway.AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT, Family: netlink.FAMILY_V6}
	name := fmt.Sprintf("neighbour %v dev %s", guestGateway, guestDev)
	return item{
		name: name, key: name,
		present: func(*kernelView) (bool, error) {
			all, err := netlink.NeighList(link, netlink.FAMILY_V6)
			return slices.ContainsFunc(all, func(o netlink.Neigh) bool {
				return o.IP.Equal(n.IP) && o.State == netlink.NUD_PERMANENT && slices.Equal(o.HardwareAddr, mac)
			}), err
		},
		add:    func() error { return netlink.NeighSet(n) },
		remove: func() error { return netlink.NeighDel(n) },
	}
}

// fit makes the link carry what the uplinks do.
func (x *guest) fit(mtu int) error {
	if mtu = max(mtu, fewGuestBytes); mtu == x.mtu {
		return nil
	}
	here, err := netlink.LinkByIndex(x.link)
	if err == nil {
		err = netlink.LinkSetMTU(here, mtu)
	}
	if err == nil {
		err = x.ns.do(func() error {
			there, err := netlink.LinkByName(guestDev)
			if err == nil {
				err = netlink.LinkSetMTU(there, mtu)
			}
			return err
		})
	}
	if err == nil {
		x.mtu = mtu
	}
	return err
}

// attach puts the edge on the link.
func (x *guest) attach() error {
	return x.d.edge.AddGuest(host.Guest{Number: x.Number, Link: x.link, Identity: x.identity}, x.ns.do)
}

// listen begins to watch the guest's sockets, those that are there first, and its kernel's TCP.
func (x *guest) listen() error {
	err := x.ns.do(func() (err error) {
		if x.diag, err = sockets.OpenDiag(); err != nil {
			return err
		}
		if x.kicker, err = kick.Open(); err != nil {
			return err
		}
		if x.Address.IsValid() {
			x.socks, err = x.d.hooks.JoinWild(x.d.home.Space.Services)
		} else {
			x.socks, err = x.d.hooks.Join(x.d.home.Space.Services)
		}
		return err
	})
	if err != nil {
		return err
	}
	idle, err := x.datagrams()
	if err != nil {
		return err
	}
	x.d.flows.watch(x.Number, idle)
	x.d.sessions.host(x.Number, x.kicker)
	x.readers = make(chan struct{})
	go x.d.readSockets(x.Number, x.socks, x.readers)
	return nil
}

// datagrams is for the sweeper, which asks beside the loop.
func (x *guest) datagrams() (d *sockets.Diag, err error) {
	err = x.ns.do(func() error { d, err = sockets.OpenDiag(); return err })
	return d, err
}

func (x *guest) stopReading() {
	if x.readers != nil {
		x.socks.Interrupt()
		x.d.waitFor(x.readers)
		x.readers = nil
	}
}

// lower takes away what raise did, as far as it came.
func (x *guest) lower() {
	x.stopReading()
	x.closeNames()
	removeResolver(x.guestRecord)
	if x.d.edge != nil {
		if err := x.d.edge.RemoveGuest(x.Number); err != nil {
			x.d.log.Warn("take the edge off a guest", "guest", x.Name, "error", err)
		}
	}
	x.release(false)
	err := x.ns.do(func() error {
		x.kernel.remove()
		if x.Nonlocal != "" {
			os.WriteFile(nonlocalBind, []byte(x.Nonlocal), 0)
		}
		if x.Closed {
			os.WriteFile(loopbackOff, []byte("1"), 0)
		}
		return nil
	})
	if err != nil {
		x.d.log.Warn("clean up a guest", "guest", x.Name, "error", err)
	}
	removeLink(x.guestRecord)
	x.ns.close()
}

// letGo gives up this process's hold and leaves all in place.
func (x *guest) letGo() {
	x.stopReading()
	x.closeNames()
	x.release(true)
	x.ns.close()
}

func (x *guest) release(keep bool) {
	x.d.flows.unwatch(x.Number)
	x.d.sessions.unhost(x.Number)
	if x.socks != nil {
		x.socks.Close(keep)
	}
	if x.diag != nil {
		x.diag.Close()
	}
	if x.alone != nil {
		x.alone.Close()
	}
}

// removeLink removes the host's end of a guest's link, and with it the other.
func removeLink(r *guestRecord) {
	if l, err := netlink.LinkByName(linkOf(r)); err == nil && l.Type() == "veth" {
		netlink.LinkDel(l) //nolint:errcheck // it goes with the guest's namespace
	}
}

// serves lists what sockets of the guest serve.
func (x *guest) serves() (all []sid.Triple) {
	for t := range x.d.serving.instances {
		if slices.Contains(x.d.serving.sockets.Guests(t), x.Number) {
			all = append(all, t)
		}
	}
	return all
}
