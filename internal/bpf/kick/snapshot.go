package kick

import (
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"
)

// A Set is the connections that a caller means; nil means all.
type Set map[Tuple]struct{}

// SetOf makes a Set.
func SetOf(tuples ...Tuple) Set {
	s := make(Set, len(tuples))
	for _, t := range tuples {
		s[t] = struct{}{}
	}
	return s
}

func (s Set) has(t Tuple) bool {
	if s == nil {
		return true
	}
	_, ok := s[t]
	return ok
}

// State returns the sockets of the given connections, in no order; those that do not exist are left out.
func (k *Kicker) State(tuples ...Tuple) ([]Socket, error) { return k.Snapshot(SetOf(tuples...)) }

// Snapshot returns the namespace's IPv6 TCP sockets that want names: no listeners, half-open connections
// or TIME_WAIT. A few are looked at one by one, each as it stands still; for many, and for what is not found like
// that, one pass visits all sockets of the machine, and reads those of the namespace under their locks.
func (k *Kicker) Snapshot(want Set) (all []Socket, err error) {
	err = k.each(want, func(s *Socket) error { all = append(all, *s); return nil })
	return all, err
}

// Each calls f with every such socket, by one pass. The socket is f's only until it returns; f asks nothing of the
// Kicker.
func (k *Kicker) Each(f func(*Socket)) error {
	return k.each(nil, func(s *Socket) error { f(s); return nil })
}

// each calls f with the wanted sockets. The socket is f's only until it returns.
func (k *Kicker) each(want Set, f func(*Socket) error) error {
	if k.lost != nil {
		return k.inside(func() error { return eachDiag(want, f) })
	}
	if want != nil && len(want) <= few {
		rest, err := k.eachOne(want, f)
		if err != nil || len(rest) == 0 {
			return err
		}
		want = rest
	}
	return k.pass(want, f)
}

// pass is each by a pass over all sockets, of which no more is in memory than the kernel gives at a time.
func (k *Kicker) pass(want Set, f func(*Socket) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.iter == nil {
		return errClosed
	}
	var pass io.ReadCloser
	err := k.inside(func() (err error) { pass, err = k.iter.Open(); return err })
	if err != nil {
		return fmt.Errorf("kick: begin to read TCP sockets: %w", err)
	}
	defer pass.Close()
	if k.records == nil {
		k.records = make([]dumpRecord, atATime)
	}
	var jiffy time.Duration
	for have := 0; ; {
		got, err := pass.Read(bytesOf(k.records)[have:])
		have += got
		for i := range k.records[:have/recordLen] {
			if jiffy == 0 {
				jiffy = jiffyOf(time.Duration(k.records[i].Now), k.records[i].Jiffies)
			}
			if err := show(&k.records[i], jiffy, want, f); err != nil {
				return err
			}
		}
		b := bytesOf(k.records)
		have = copy(b, b[have-have%recordLen:have])
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("kick: read TCP sockets: %w", err)
		}
	}
}

// show calls f with the record's socket, if it is wanted.
func show(r *dumpRecord, jiffy time.Duration, want Set, f func(*Socket) error) error {
	t := r.tuple()
	if !want.has(t) {
		return nil
	}
	s := r.socket(t, jiffy)
	return f(&s)
}

const (
	recordLen = int(unsafe.Sizeof(dumpRecord{}))
	atATime   = 64 << 10 / recordLen // the kernel gives 32 KiB
)

// bytesOf is the memory of records; their layout is the kernel's own, see record.h.
func bytesOf(records []dumpRecord) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(records))), len(records)*recordLen)
}
