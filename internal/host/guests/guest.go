package guests

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/host/routing"
	"scaffold.dev/scaffold/sid"
)

// A guest is a network namespace that is up behind this host's edge. Its link is for this alone: what else it has
// of interfaces, a runtime's for instance, is left as it is.
type guest struct {
	*record
	in       *Guests
	ns       Namespace
	identity netip.Addr
	alone    io.Closer // no hostd of its own begins meanwhile
	link     int       // here, that leads to it
	mtu      int
	kernel   routing.Setup // in it
	diag     *sockets.Diag
	socks    *sockets.Host
	readers  chan struct{}
	answers  []func() // to DNS: what ends them
	kicker   *kick.Kicker
	mute     string // why it finds no names
	tether   *tether
}

// guestIdentity is the low half of a guest's stable address: a guest of the same name again has the same.
func guestIdentity(host uint64, name string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "scaffold guest 1\x00%016x\x00%s", host, name))
	return binary.BigEndian.Uint64(sum[:8])>>1 | sid.ReservedSuffixes
}

// raise sets all up; what fails is undone by lower.
func (x *guest) raise() error {
	for _, step := range []func() error{x.enter, x.cable, x.furnish, x.attach, x.listen} {
		if err := step(); err != nil {
			return err
		}
	}
	x.openNames()
	return nil
}

// attach puts the edge on the link.
func (x *guest) attach() error {
	return x.in.Host.Edge().AddGuest(host.Guest{Number: x.Number, Link: x.link, Identity: x.identity, Wildcard: x.Address.IsValid()}, x.ns.do)
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
			x.socks, err = x.in.Hooks.JoinWild(x.in.space().Services)
		} else {
			x.socks, err = x.in.Hooks.Join(x.in.space().Services)
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
	x.in.Flows.Watch(x.Number, idle)
	x.in.Flows.Host(x.Number, x.kicker)
	x.readers = make(chan struct{})
	go x.in.Registry.Watch(x.Number, x.socks, x.readers)
	return nil
}

// datagrams is for the sweeper, which asks beside the loop.
func (x *guest) datagrams() (d *sockets.Diag, err error) {
	err = x.ns.do(func() error { d, err = sockets.OpenDiag(); return err })
	return d, err
}

func (x *guest) stopReading() {
	if x.readers != nil {
		x.socks.Interrupt() //nolint:errcheck // its readers are waited for, at most a while
		x.in.WaitFor(x.readers)
		x.readers = nil
	}
}

// lower takes away what raise did, as far as it came.
func (x *guest) lower() {
	x.stopReading()
	x.closeNames()
	removeResolver(x.record)
	if x.in.Host.Edge() != nil {
		if err := x.in.Host.Edge().RemoveGuest(x.Number); err != nil {
			x.in.Log.Warn("take the edge off a guest", "guest", x.Name, "error", err)
		}
	}
	x.release(false)
	err := x.ns.do(func() error {
		x.kernel.Remove()
		if x.Nonlocal != "" {
			routing.RestoreNonlocalBind(x.Nonlocal)
		}
		if x.Closed {
			os.WriteFile(loopbackOff, []byte("1"), 0) //nolint:errcheck // as above
		}
		return nil
	})
	if err != nil {
		x.in.Log.Warn("clean up a guest", "guest", x.Name, "error", err)
	}
	removeLink(x.record)
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
	x.in.tethers.release(x.tether)
	x.in.Flows.Unwatch(x.Number)
	x.in.Flows.Unhost(x.Number)
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
