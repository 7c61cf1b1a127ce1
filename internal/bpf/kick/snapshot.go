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

// pass is each by a pass over all sockets; f is called after it.
func (k *Kicker) pass(want Set, f func(*Socket) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, err := k.read()
	if err != nil || n == 0 {
		return err
	}
	jiffy := jiffyOf(time.Duration(k.records[0].Now), k.records[0].Jiffies)
	for i := range k.records[:n] {
		t := k.records[i].tuple()
		if !want.has(t) {
			continue
		}
		s := k.records[i].socket(t, jiffy)
		if err := f(&s); err != nil {
			return err
		}
	}
	return nil
}

const recordLen = int(unsafe.Sizeof(dumpRecord{}))

// read fills k.records and tells how many there are.
func (k *Kicker) read() (n int, err error) {
	if k.iter == nil {
		return 0, errClosed
	}
	var pass io.ReadCloser
	err = k.inside(func() error { pass, err = k.iter.Open(); return err })
	if err != nil {
		return 0, fmt.Errorf("kick: begin to read TCP sockets: %w", err)
	}
	defer pass.Close()
	size := 0
	for {
		if size/recordLen+1 > len(k.records) {
			k.records = append(k.records, make([]dumpRecord, max(256, len(k.records)))...)
		}
		got, err := pass.Read(bytesOf(k.records)[size:])
		size += got
		switch {
		case errors.Is(err, io.EOF):
			return size / recordLen, nil
		case err != nil:
			return 0, fmt.Errorf("kick: read TCP sockets: %w", err)
		}
	}
}

// bytesOf is the memory of records; their layout is the kernel's own, see record.h.
func bytesOf(records []dumpRecord) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(records))), len(records)*recordLen)
}
