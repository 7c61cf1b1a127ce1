package divert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// A HeldSYN is a SYN in a lane, which waits for a decision: Accept or Pass, then the frame sent by lo with the mark, or
// Forget.
type HeldSYN struct {
	Client, Server netip.AddrPort
	Lane           uint64
	Options        frame.Options
	Port           int    // number of the interface where it came
	Frame          []byte // with its Ethernet header; the checksum may be one that a device was to complete
}

// ErrClosed is what Read says when the Diverter is closed.
var ErrClosed = errors.New("the agent's ports are closed")

// ErrDecided says that a SYN is held no more: it was decided about, or has gone on, for nobody decided in time.
var ErrDecided = errors.New("the SYN is held no more")

// Read waits for the next SYN that is held. One goroutine reads.
func (d *Diverter) Read() (HeldSYN, error) {
	record, err := d.ring.Read()
	if errors.Is(err, ringbuf.ErrClosed) || errors.Is(err, os.ErrClosed) {
		return HeldSYN{}, ErrClosed
	}
	if err != nil {
		return HeldSYN{}, fmt.Errorf("read of held SYNs: %w", err)
	}
	return parseSYN(record.RawSample)
}

// Interrupt ends a Read that waits, and those to come.
func (d *Diverter) Interrupt() error { return d.ring.Close() }

func parseSYN(b []byte) (HeldSYN, error) {
	var e divertHeldSyn
	if len(b) < int(unsafe.Sizeof(e)) {
		return HeldSYN{}, fmt.Errorf("a held SYN has %d bytes, expected %d", len(b), unsafe.Sizeof(e))
	}
	if _, err := binary.Decode(b, binary.NativeEndian, &e); err != nil {
		return HeldSYN{}, err
	}
	if e.Length > uint32(len(e.Frame)) {
		return HeldSYN{}, fmt.Errorf("a held SYN's frame has %d bytes, expected up to %d", e.Length, len(e.Frame))
	}
	return HeldSYN{
		Client: e.Ends.remote(), Server: e.Ends.local(), Lane: e.Lane, Options: e.Options.frame(), Port: int(e.Ifindex),
		Frame: e.Frame[:e.Length:e.Length],
	}, nil
}

// The bits of options.has.
const (
	hasSACK       = 1
	hasTimestamps = 2
	hasScale      = 4
)

func (o divertOptions) frame() frame.Options {
	return frame.Options{Sequence: o.Sequence, Timestamp: o.Timestamp, MSS: o.Mss, WindowScale: o.Scale,
		SACK: o.Has&hasSACK != 0, HasTimestamps: o.Has&hasTimestamps != 0, Scaled: o.Has&hasScale != 0}
}

// Holds reports whether the SYN is still held and undecided.
func (d *Diverter) Holds(s HeldSYN) bool {
	_, err := d.undecided(s)
	return err == nil
}

func (d *Diverter) undecided(s HeldSYN) (divertHeld, error) {
	var h divertHeld
	err := d.objs.Holds.Lookup(endsOf(s.Server, s.Client), &h)
	if errors.Is(err, ebpf.ErrKeyNotExist) || err == nil && (h.Sequence != s.Options.Sequence || h.Hold != holdUndecided) {
		return h, ErrDecided
	}
	return h, err
}

// enum hold.
const (
	holdUndecided = iota
	holdAccepted
	holdPassed
)

// Accept has the SYN given to the listener when it comes back; Pass has it go on.
func (d *Diverter) Accept(s HeldSYN) error { return d.decide(s, holdAccepted) }

// Pass has the SYN go on unboosted when it comes back, and when it is sent again.
func (d *Diverter) Pass(s HeldSYN) error { return d.decide(s, holdPassed) }

func (d *Diverter) decide(s HeldSYN, hold uint8) error {
	h, err := d.undecided(s)
	if err != nil {
		return err
	}
	h.Hold = hold
	err = d.objs.Holds.Update(endsOf(s.Server, s.Client), h, ebpf.UpdateExist)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return ErrDecided
	}
	return err
}

// Forget ends the hold: sent again it is a new SYN.
func (d *Diverter) Forget(s HeldSYN) error {
	if _, err := d.undecided(s); err != nil {
		return err
	}
	return d.release(s)
}

// release ends a hold, whatever was decided.
func (d *Diverter) release(s HeldSYN) error {
	err := d.objs.Holds.Delete(endsOf(s.Server, s.Client))
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return ErrDecided
	}
	return err
}

// Mark is what packets carry that are for sockets of the agent.
func (d *Diverter) Mark() uint32 { return d.cfg.Mark }
