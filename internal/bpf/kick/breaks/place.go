// Package breaks is the smallest network on which a kick shows when a link breaks: a host that loses its link, a host that does
// not, a router between them, each in a network namespace without a name that goes with this process. It is
// for benchmarks.
package breaks

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// A Place is a network namespace with a Kicker.
type Place struct {
	Kicker *kick.Kicker
	name   string
	file   *os.File
	link   *netlink.Handle
}

func newPlace(name string) (*Place, error) {
	p := &Place{name: name}
	var err error
	if p.file, err = nsenter.New(settings); err != nil {
		return nil, fmt.Errorf("breaks: %s: %w (needs root)", name, err)
	}
	err = p.inside(func() (err error) {
		if p.Kicker, err = kick.Open(); err == nil {
			p.link, err = netlink.NewHandle()
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, p.up("lo")
}

// settings make the namespace a router that needs no second for each new address.
func settings() error {
	for _, s := range [][2]string{
		{"all/forwarding", "1"}, {"all/accept_dad", "0"}, {"default/accept_dad", "0"},
		{"default/router_solicitations", "0"},
	} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+s[0], []byte(s[1]), 0); err != nil {
			return err
		}
	}
	return nil
}

func (p *Place) close() error {
	var err error
	if p.Kicker != nil {
		err = p.Kicker.Close()
	}
	if p.link != nil {
		p.link.Close()
	}
	if p.file != nil {
		p.file.Close()
	}
	return err
}

// inside runs f in the namespace.
func (p *Place) inside(f func() error) error {
	if err := nsenter.Do(p.file, f); err != nil {
		return fmt.Errorf("breaks: %s: %w", p.name, err)
	}
	return nil
}

func (p *Place) up(dev string) error {
	l, err := p.link.LinkByName(dev)
	if err == nil {
		err = p.link.LinkSetUp(l)
	}
	return p.failed("up", dev, err)
}

func (p *Place) down(dev string) error {
	l, err := p.link.LinkByName(dev)
	if err == nil {
		err = p.link.LinkSetDown(l)
	}
	return p.failed("down", dev, err)
}

// address puts the host's own address where no link takes it away.
func (p *Place) address(cidr string) error {
	l, err := p.link.LinkByName("lo")
	if err != nil {
		return p.failed("address", cidr, err)
	}
	a, err := netlink.ParseAddr(cidr)
	if err != nil {
		return p.failed("address", cidr, err)
	}
	a.Flags = unix.IFA_F_NODAD
	return p.failed("address", cidr, p.link.AddrAdd(l, a))
}

// route makes or replaces a route with the settings of a host's service route: rtoMin in ms, 0 is the
// kernel's own; via nil and dev "" is a hole in which packets vanish.
func (p *Place) route(dst string, via net.IP, dev string, rtoMin int) error {
	_, prefix, err := net.ParseCIDR(dst)
	if err != nil {
		return p.failed("route", dst, err)
	}
	// TCP looks only at a locked rto_min.
	r := &netlink.Route{Dst: prefix, Gw: via, RtoMin: rtoMin, RtoMinLock: rtoMin > 0}
	if dev == "" {
		r.Type, r.Priority = unix.RTN_BLACKHOLE, 9999
		return p.failed("hole", dst, p.link.RouteReplace(r))
	}
	l, err := p.link.LinkByName(dev)
	if err != nil {
		return p.failed("route", dst, err)
	}
	r.LinkIndex = l.Attrs().Index
	if rtoMin > 0 {
		r.QuickACK = 1
	}
	return p.failed("route", dst, p.link.RouteReplace(r))
}

// linkLocal waits until the kernel has the link in use and returns the address that the others use as next
// hop. Before that the kernel drops what it is given to send, and does not hear who asks for the address.
func (p *Place) linkLocal(dev string) (net.IP, error) {
	var ip net.IP
	var err error
	for deadline := time.Now().Add(limit); ip == nil && time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		if ip, err = p.ready(dev); err != nil {
			return nil, p.failed("find", dev, err)
		}
	}
	if ip == nil {
		err = errors.New("the link does not come up")
	}
	return ip, p.failed("find a link-local address of", dev, err)
}

func (p *Place) ready(dev string) (net.IP, error) {
	l, err := p.link.LinkByName(dev)
	if err != nil || l.Attrs().OperState != netlink.OperUp {
		return nil, err
	}
	all, err := p.link.AddrList(l, unix.AF_INET6)
	for _, a := range all {
		if a.IP.IsLinkLocalUnicast() && a.Flags&unix.IFA_F_TENTATIVE == 0 {
			return a.IP, nil
		}
	}
	return nil, err
}

func (p *Place) failed(what, which string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("breaks: %s: %s %s: %w", p.name, what, which, err)
}
