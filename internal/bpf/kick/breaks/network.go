package breaks

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
)

// A Network is the two hosts and the router between them. Mover is the one whose link is cut.
type Network struct {
	Mover, Other *Place
	router       *Place
	rtoMin       int
}

const moverAddr, otherAddr = "fd5e::1", "fd5e::2"

// New makes the network; rtoMin in ms is the least retransmission timeout of both hosts' routes, 0 leaves
// the kernel's 200 ms.
func New(rtoMin int) (n *Network, err error) {
	n = &Network{rtoMin: rtoMin}
	for _, p := range []struct {
		name string
		at   **Place
	}{{"moving host", &n.Mover}, {"other host", &n.Other}, {"router", &n.router}} {
		if *p.at, err = newPlace(p.name); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	if err := n.join(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Close removes the network.
func (n *Network) Close() error {
	var errs []error
	for _, p := range []*Place{n.Mover, n.Other, n.router} {
		if p != nil {
			errs = append(errs, p.close())
		}
	}
	return errors.Join(errs...)
}

func (n *Network) join() error {
	for _, w := range []struct {
		host *Place
		port string
	}{{n.Mover, "m"}, {n.Other, "o"}} {
		pair := &netlink.Veth{
			LinkAttrs:     netlink.LinkAttrs{Name: "up", Namespace: netlink.NsFd(w.host.file.Fd())},
			PeerName:      w.port,
			PeerNamespace: netlink.NsFd(n.router.file.Fd()),
		}
		if err := w.host.link.LinkAdd(pair); err != nil {
			return w.host.failed("join to the router by", w.port, err)
		}
	}
	return errors.Join(n.Mover.address(moverAddr+"/128"), n.Other.address(otherAddr+"/128"),
		n.router.route(moverAddr+"/128", nil, "", 0), n.plug(n.Other, "o", otherAddr), n.Heal())
}

// plug sets a host's link up and makes both routes over it.
func (n *Network) plug(host *Place, port, addr string) error {
	if err := errors.Join(n.router.up(port), host.up("up")); err != nil {
		return err
	}
	gateway, errA := n.router.linkLocal(port)
	own, errB := host.linkLocal("up")
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	return errors.Join(n.router.route(addr+"/128", own, port, 0), host.route("::/0", gateway, "up", n.rtoMin))
}

// Cut takes the mover's link away. It has no route then, and what the other host sends vanishes.
func (n *Network) Cut() error { return errors.Join(n.Mover.down("up"), n.router.down("m")) }

// Heal gives it back.
func (n *Network) Heal() error { return n.plug(n.Mover, "m", moverAddr) }

// Kick kicks both ends.
func (n *Network) Kick() error {
	_, errA := n.Mover.Kicker.Kick(nil)
	_, errB := n.Other.Kicker.Kick(nil)
	return errors.Join(errA, errB)
}

// A Pair is the two ends of a connection.
type Pair struct{ Mover, Other *net.TCPConn }

// Close ends the connection.
func (p Pair) Close() error { return errors.Join(p.Mover.Close(), p.Other.Close()) }

// Connect makes count connections from the mover to the other host.
func (n *Network) Connect(count int) (pairs []Pair, err error) {
	var l *net.TCPListener
	err = n.Other.inside(func() error {
		l, err = net.ListenTCP("tcp6", &net.TCPAddr{IP: net.ParseIP(otherAddr)})
		return err
	})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	err = n.Mover.inside(func() error {
		for range count {
			p, err := connect(l)
			if err != nil {
				return fmt.Errorf("connection %d of %d: %w", len(pairs)+1, count, err)
			}
			pairs = append(pairs, p)
		}
		return nil
	})
	return pairs, err
}

func connect(l *net.TCPListener) (p Pair, err error) {
	if p.Mover, err = net.DialTCP("tcp6", nil, l.Addr().(*net.TCPAddr)); err != nil {
		return p, err
	}
	p.Other, err = l.AcceptTCP()
	return p, err
}
