package divert

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/bpf/ktime"
)

// Begin has what comes from remote to local given to a socket between them, once there is one. Its FIN is an RST until
// Finish. It is an error if there is one already.
func (d *Diverter) Begin(local, remote netip.AddrPort) error {
	ends, s := endsOf(local, remote), divertSession{Made: ktime.Now()}
	err := d.objs.Sessions.Update(ends, s, ebpf.UpdateNoExist)
	if errors.Is(err, ebpf.ErrKeyExist) {
		err = d.replace(ends, s)
	}
	if err != nil {
		return fmt.Errorf("session of %v with %v: %w", local, remote, err)
	}
	return nil
}

// replace is for a session that is not swept yet. One whose socket only waits for late segments goes with it.
func (d *Diverter) replace(ends divertEnds, s divertSession) error {
	sockets, err := d.sockets()
	if err != nil {
		return err
	}
	if state, there := sockets[ends]; there && state != timeWait {
		return errors.New("it is there already")
	}
	return d.objs.Sessions.Update(ends, s, ebpf.UpdateAny)
}

// Keep is Begin unless it has begun: one that had no socket for a while may have been swept.
func (d *Diverter) Keep(local, remote netip.AddrPort) error {
	err := d.objs.Sessions.Update(endsOf(local, remote), divertSession{Made: ktime.Now()}, ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("session of %v with %v: %w", local, remote, err)
	}
	return nil
}

// Renew is Begin for a connection whose client has begun anew: a socket of ours that still waits for late segments of the
// one before goes, as it would had the kernel found its listener by itself. Where the kernel cannot do that (before 6.10)
// the new connection stands back for a minute at most.
func (d *Diverter) Renew(local, remote netip.AddrPort) error {
	if err := d.net.inside(func() error { return destroy(local, remote) }); err != nil {
		return fmt.Errorf("socket of %v with %v that has ended: %w", local, remote, err)
	}
	return d.Begin(local, remote)
}

// The kernel's states of a socket that has sent its FIN and has no answer to it, and TCP_TIME_WAIT.
const (
	finWait1 = 4
	timeWait = 6
	lastACK  = 9
	closing  = 11
)

func unanswered(state uint8) bool { return state == finWait1 || state == lastACK || state == closing }

// Finish says that the stream from local to remote is whole: its FIN may leave.
func (d *Diverter) Finish(local, remote netip.AddrPort) error {
	ends := endsOf(local, remote)
	var s divertSession
	err := d.objs.Sessions.Lookup(ends, &s)
	if err == nil {
		s.Finished = 1
		err = d.objs.Sessions.Update(ends, s, ebpf.UpdateExist)
	}
	if err != nil {
		return fmt.Errorf("the stream from %v to %v is whole: %w", local, remote, err)
	}
	return nil
}

// End forgets a session that has no socket.
func (d *Diverter) End(local, remote netip.AddrPort) error {
	err := d.objs.Sessions.Delete(endsOf(local, remote))
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// Said is what the ends of a session said of themselves in SYN and SYN-ACK, as far as that came by our ports. Of the end
// that sent a SYN which was held, HeldSYN tells it.
func (d *Diverter) Said(local, remote netip.AddrPort) (own, peer frame.Options) {
	var s divertSession
	if err := d.objs.Sessions.Lookup(endsOf(local, remote), &s); err != nil {
		return own, peer // it is gone: nothing is known of it
	}
	if s.OwnKnown != 0 {
		own = s.Own.frame()
	}
	if s.PeerKnown != 0 {
		peer = s.Peer.frame()
	}
	return own, peer
}

// Sessions counts them, with those whose sockets are gone since the last Sweep.
func (d *Diverter) Sessions() (n int, err error) {
	all, err := d.sessions()
	return len(all), err
}

func (d *Diverter) sessions() (map[divertEnds]divertSession, error) {
	all := map[divertEnds]divertSession{}
	var ends divertEnds
	var s divertSession
	it := d.objs.Sessions.Iterate()
	for it.Next(&ends, &s) {
		all[ends] = s
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("list the sessions: %w", err)
	}
	return all, nil
}

// Sweep forgets sessions that had no socket at this call nor at the one before: a socket may end long after its
// descriptor is closed, and a session begins before its socket does. Sockets of a process that has died, whose end nobody can
// tell, end with it. Call it every few seconds.
func (d *Diverter) Sweep() error {
	all, err := d.sessions()
	if err != nil || len(all) == 0 {
		return err
	}
	now := ktime.Now()
	sockets, err := d.sockets()
	if err != nil {
		return err
	}
	if all, err = d.sessions(); err != nil { // behind the sockets: one that has sent its FIN was finished before that, or is not whole
		return err
	}
	before := d.gone
	d.gone = map[divertEnds]bool{}
	var errs []error
	for ends, s := range all {
		switch {
		case unanswered(sockets[ends]) && s.Finished == 0 && s.Made < now:
			// Its FIN leaves as a reset, which nobody answers, so that the kernel would say it again for a minute or two.
			errs = append(errs, d.net.inside(func() error { return destroy(ends.local(), ends.remote()) }))
		case there(sockets, ends):
		case before[ends] && s.Made < now: // else it has begun anew since the sockets were listed
			errs = append(errs, d.End(ends.local(), ends.remote()))
		default:
			d.gone[ends] = true
		}
	}
	return errors.Join(errs...)
}

// endWaiting ends sockets of ours that only wait for late segments: without us, a segment for one of them that passes would be dropped
// (tcp_early_demux, network.go). Before 6.10 the kernel does not end them, and a client's port that one of them has is free in a minute.
func (d *Diverter) endWaiting() error {
	if d.objs.Sessions == nil { // nothing is loaded
		return nil
	}
	all, err := d.sessions()
	if err != nil || len(all) == 0 {
		return err
	}
	sockets, err := d.sockets()
	if err != nil {
		return err
	}
	return d.net.inside(func() error {
		var errs []error
		for ends := range all {
			if sockets[ends] == timeWait {
				errs = append(errs, destroy(ends.local(), ends.remote()))
			}
		}
		return errors.Join(errs...)
	})
}

func there(sockets map[divertEnds]uint8, ends divertEnds) bool {
	_, there := sockets[ends]
	return there
}

// sockets are the states of all TCP sockets of the namespace, by their ends.
func (d *Diverter) sockets() (map[divertEnds]uint8, error) {
	found := map[divertEnds]uint8{}
	err := d.net.inside(func() error {
		for _, family := range families() {
			all, err := netlink.SocketDiagTCP(uint8(family))
			if err != nil {
				return fmt.Errorf("list the sockets: %w", err)
			}
			for _, s := range all {
				found[endsOf(socketEnd(s.ID.Source, s.ID.SourcePort), socketEnd(s.ID.Destination, s.ID.DestinationPort))] = s.State
			}
		}
		return nil
	})
	return found, err
}

func socketEnd(ip net.IP, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}
