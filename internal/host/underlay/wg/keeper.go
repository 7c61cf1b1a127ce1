package wg

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"scaffold.dev/scaffold/internal/host/underlay"
)

// keepalive holds a NAT's mapping where nothing else passes: most forget one of UDP after 30 s or more.
const keepalive = 15 // seconds

// An engine is an implementation of WireGuard.
type engine interface {
	name() string
	configure(key []byte, listen uint16) error
	setPeer(underlay.Peer) error
	makePort(in underlay.Port, into *os.File) error // in that namespace
	dropPort(in underlay.Port) error                // what is left once the interface is gone
	removePeer(key []byte) error
	states() (map[string]underlay.PeerState, error) // by public key
	close()
}

// A keeper is the state of the process.
type keeper struct {
	daemon *netlink.Handle // in the daemon's namespace
	into   *os.File        // that namespace
	engine engine          // nil before the first task
	has    underlay.Setup
}

func newKeeper(into *os.File) (*keeper, error) {
	h, err := netlink.NewHandleAt(netns.NsHandle(into.Fd()))
	if err != nil {
		return nil, fmt.Errorf("enter the daemon's network namespace: %w", err)
	}
	return &keeper{daemon: h, into: into}, nil
}

// set makes the tunnels what they are to be. What fails is tried anew the next time.
func (k *keeper) set(want underlay.Setup) error {
	if err := k.open(want); err != nil {
		return err
	}
	var errs []error
	kept := k.has.Peers[:0:0]
	for _, p := range k.has.Peers {
		if now, ok := find(want.Peers, p.Number); ok && bytes.Equal(now.Key, p.Key) && now.Name == p.Name && k.there(p) {
			kept = append(kept, p)
			continue
		}
		errs = append(errs, k.remove(p))
	}
	k.has.Peers = kept
	for _, p := range want.Peers {
		old, _ := find(k.has.Peers, p.Number)
		if err := k.keep(p, old); err != nil {
			errs = append(errs, err)
			continue
		}
		if old != nil {
			*old = p
		} else {
			k.has.Peers = append(k.has.Peers, p)
		}
	}
	return errors.Join(errs...)
}

func find(list []underlay.Peer, number uint32) (*underlay.Peer, bool) {
	for i := range list {
		if list[i].Number == number {
			return &list[i], true
		}
	}
	return nil, false
}

// open starts the engine, or gives it another key or port.
func (k *keeper) open(want underlay.Setup) error {
	if k.engine == nil {
		e, err := start(k.into)
		if err != nil {
			return err
		}
		k.engine = e
	} else if bytes.Equal(k.has.Key, want.Key) && k.has.Listen == want.Listen && k.has.Router == want.Router {
		return nil
	}
	if g, ok := k.engine.(*goEngine); ok {
		g.bind.answers = want.Router
	}
	if err := k.engine.configure(want.Key, want.Listen); err != nil {
		return err
	}
	k.has.Key, k.has.Listen, k.has.Router = want.Key, want.Listen, want.Router
	return nil
}

// start takes the kernel's WireGuard, or else wireguard-go.
func start(into *os.File) (engine, error) {
	e, err := startKernel(into)
	if err == nil {
		return e, nil
	}
	g, errGo := startGo(into)
	if errGo != nil {
		return nil, fmt.Errorf("the kernel has no WireGuard (%w), and without it a TUN device is needed: %w", err, errGo)
	}
	return g, nil
}

// there reports whether a tunnel's interface has not been removed by somebody.
func (k *keeper) there(p underlay.Peer) bool {
	_, err := k.daemon.LinkByName(p.Name)
	return err == nil
}

// keep makes a tunnel, or leads one elsewhere.
func (k *keeper) keep(p underlay.Peer, old *underlay.Peer) error {
	if old == nil || old.Endpoint != p.Endpoint {
		if err := k.engine.setPeer(p); err != nil {
			return fmt.Errorf("tunnel %s: %w", p.Name, err)
		}
	}
	if old != nil {
		return nil
	}
	if err := k.unlink(p.Name); err != nil { // of a process that was killed; its namespace takes a moment to go
		return err
	}
	if err := k.engine.makePort(p.Port.Inside(k.has.Router), k.into); err != nil {
		return fmt.Errorf("tunnel %s: %w", p.Name, err)
	}
	return nil
}

func (k *keeper) remove(p underlay.Peer) error {
	return errors.Join(k.unlink(p.Name), k.engine.removePeer(p.Key), k.engine.dropPort(p.Port.Inside(k.has.Router)))
}

func (k *keeper) unlink(name string) error {
	link, err := k.daemon.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err == nil {
		err = k.daemon.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("remove the tunnel %s: %w", name, err)
	}
	return nil
}

// only is the prefix of one address.
func only(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

func (k *keeper) state() (underlay.State, error) {
	s := underlay.State{Version: underlay.ProcessVersion, Setup: k.has}
	if k.engine == nil {
		return s, nil
	}
	s.Engine = k.engine.name()
	known, err := k.engine.states()
	if err != nil {
		return s, err
	}
	for _, p := range k.has.Peers {
		state := known[string(p.Key)]
		state.Number = p.Number
		s.Peers = append(s.Peers, state)
	}
	return s, nil
}

// close removes the tunnels at once; the rest goes with the namespace.
func (k *keeper) close() {
	for _, p := range k.has.Peers {
		k.unlink(p.Name) //nolint:errcheck // the namespace's end does it
	}
	if k.engine != nil {
		k.engine.close()
	}
	k.daemon.Close()
}
