package hostd

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"

	"github.com/miekg/dns"

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
	tether   *tether
}

// guestIdentity is the low half of a guest's stable address: a guest of the same name again has the same.
func guestIdentity(host uint64, name string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "scaffold guest 1\x00%016x\x00%s", host, name))
	return binary.BigEndian.Uint64(sum[:8])>>1 | sid.ReservedSuffixes
}

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
	x.d.guests.tethers.release(x.tether)
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

// serves lists what sockets of the guest serve.
func (x *guest) serves() (all []sid.Triple) {
	for t := range x.d.serving.instances {
		if slices.Contains(x.d.serving.sockets.Guests(t), x.Number) {
			all = append(all, t)
		}
	}
	return all
}
