package kick

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

// few is how many connections are looked at one by one: a pass visits every bucket of a table that the whole
// machine shares, milliseconds even where there are ten connections.
const few = 64

// What one_socket returns, as in record.h.
const (
	oneNone = iota
	oneFound
	oneBusy
)

// Look returns the socket of one connection, in microseconds. ok is false where only Snapshot can tell: there is
// none, it is bound to a device, or it was at work at that moment.
func (k *Kicker) Look(t Tuple) (s Socket, ok bool, err error) {
	if k.lost != nil {
		return s, false, nil
	}
	err = k.inside(func() error { s, ok, err = k.look(t); return err })
	return s, ok, err
}

// eachOne calls f with those of the wanted sockets that Look finds, and returns the others.
func (k *Kicker) eachOne(want Set, f func(*Socket) error) (rest Set, err error) {
	rest = Set{}
	err = k.inside(func() error {
		for t := range want {
			s, ok, err := k.look(t)
			if err != nil {
				return err
			}
			if !ok {
				rest[t] = struct{}{}
				continue
			}
			if err := f(&s); err != nil {
				return err
			}
		}
		return nil
	})
	return rest, err
}

// oneLen is an Ethernet header, the tuple, and what else a run wants of a packet.
const oneLen = 64

// look runs in the Kicker's namespace.
func (k *Kicker) look(t Tuple) (s Socket, ok bool, err error) {
	k.one.Lock()
	defer k.one.Unlock()
	if k.objects.OneSocket == nil {
		return s, false, errClosed
	}
	verdict, err := k.objects.OneSocket.Run(&ebpf.RunOptions{Data: asked(t), Repeat: 1})
	if err != nil {
		return s, false, fmt.Errorf("kick: look at %v: %w", t, err)
	}
	if verdict != oneFound {
		return s, false, nil
	}
	var r dumpRecord
	if err := k.objects.Found.Lookup(uint32(0), &r); err != nil {
		return s, false, fmt.Errorf("kick: look at %v: %w", t, err)
	}
	return r.socket(r.tuple(), jiffyOf(time.Duration(r.Now), r.Jiffies)), r.tuple() == t, nil
}

var errClosed = errors.New("kick: closed")

// asked is the packet that names a connection: its addresses and ports as in one from its peer.
func asked(t Tuple) []byte {
	local, peer := t.Local.Addr().As16(), t.Peer.Addr().As16()
	b := append(make([]byte, 14, oneLen), peer[:]...)
	b = append(b, local[:]...)
	b = binary.BigEndian.AppendUint16(b, t.Peer.Port())
	b = binary.BigEndian.AppendUint16(b, t.Local.Port())
	return b[:oneLen]
}
