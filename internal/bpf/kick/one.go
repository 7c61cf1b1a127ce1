package kick

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// few is how many connections are looked at one by one: a pass visits every bucket of a table that the whole
// machine shares, milliseconds even where there are ten connections. It is also how many devices are tried.
const few = 64

// What one_socket returns, as in record.h.
const (
	oneNone = iota
	oneFound
	oneBusy
)

// Look returns the socket of one connection, nil where there is none, in microseconds. sure is false where only
// Snapshot can tell: the socket was at work at that moment, or this kernel does not let look.
func (k *Kicker) Look(t Tuple) (s *Socket, sure bool, err error) {
	if k.lost != nil {
		return nil, false, nil
	}
	var d devices
	err = k.inside(func() error { s, sure, err = k.look(t, &d); return err })
	return s, sure, err
}

// eachOne calls f with those of the wanted sockets that Look finds, and returns those of which it is not sure.
func (k *Kicker) eachOne(want Set, f func(*Socket) error) (rest Set, err error) {
	rest = Set{}
	var d devices
	err = k.inside(func() error {
		for t := range want {
			s, sure, err := k.look(t, &d)
			switch {
			case err != nil:
				return err
			case !sure:
				rest[t] = struct{}{}
			case s != nil:
				if err := f(s); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return rest, err
}

// look runs in the Kicker's namespace. A socket that is bound to a device is found only by a packet from there.
func (k *Kicker) look(t Tuple, d *devices) (*Socket, bool, error) {
	s, verdict, err := k.lookFrom(t, 0)
	if verdict != oneNone || err != nil {
		return s, verdict == oneFound, err
	}
	if err := d.read(); err != nil {
		return nil, false, err
	}
	if len(d.all) > few {
		return nil, false, nil
	}
	for _, index := range d.all {
		s, verdict, err := k.lookFrom(t, index)
		if errors.Is(err, errNoDevice) {
			continue
		}
		if verdict != oneNone || err != nil {
			return s, verdict == oneFound, err
		}
	}
	return nil, true, nil
}

// devices are those of the namespace, once they are asked for.
type devices struct {
	all   []int
	known bool
}

func (d *devices) read() error {
	if d.known {
		return nil
	}
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("kick: list the devices that a connection may be bound to: %w", err)
	}
	for _, l := range links {
		if l.Index > loopback {
			d.all = append(d.all, l.Index)
		}
	}
	d.known = true
	return nil
}

const loopback = 1

// oneLen is an Ethernet header, the tuple, and what else a run wants of a packet.
const oneLen = 64

// runContext is struct __sk_buff of linux/bpf.h as far as it is used.
type runContext struct {
	_       [2]uint32
	Mark    uint32
	_       [7]uint32
	Ifindex uint32
	_       [37]uint32
}

var (
	errClosed   = errors.New("kick: closed")
	errNoDevice = errors.New("kick: the device is gone")
)

// lookFrom looks for the socket that a packet from the device would reach; 0 is the loopback.
func (k *Kicker) lookFrom(t Tuple, index int) (*Socket, int, error) {
	k.one.Lock()
	defer k.one.Unlock()
	if k.objects.OneSocket == nil {
		return nil, oneNone, errClosed
	}
	verdict, err := k.objects.OneSocket.Run(&ebpf.RunOptions{Data: asked(t), Context: runContext{Ifindex: uint32(index)}, Repeat: 1})
	if errors.Is(err, unix.ENODEV) {
		return nil, oneNone, errNoDevice
	}
	var r dumpRecord
	if err == nil && verdict == oneFound {
		err = k.objects.Found.Lookup(uint32(0), &r)
	}
	if err != nil {
		return nil, oneNone, fmt.Errorf("kick: look at %v: %w", t, err)
	}
	if verdict != oneFound {
		return nil, int(verdict), nil
	}
	s := r.socket(t, jiffyOf(time.Duration(r.Now), r.Jiffies))
	return &s, oneFound, nil
}

// asked is the packet that names a connection: its addresses and ports as in one from its peer.
func asked(t Tuple) []byte {
	local, peer := t.Local.Addr().As16(), t.Peer.Addr().As16()
	b := append(make([]byte, 14, oneLen), peer[:]...)
	b = append(b, local[:]...)
	b = binary.BigEndian.AppendUint16(b, t.Peer.Port())
	b = binary.BigEndian.AppendUint16(b, t.Local.Port())
	return b[:oneLen]
}
