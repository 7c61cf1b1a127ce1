package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// SetAccess says who may connect to a service, docs/protocol.md §5.7: first packets from elsewhere are
// refused. It changes without a moment in which too many may; where there is no room for all, some may not
// who should, and the error says so.
func (e *Edge) SetAccess(id sid.ServiceID, g resolve.AccessList) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	have := e.access[id.Suffix]
	if have == nil && g == nil {
		return nil
	}
	err := e.setAccess(id, have, g)
	if err != nil {
		return fmt.Errorf("host edge: who may connect to %v: %w", id, err)
	}
	return nil
}

func (e *Edge) setAccess(id sid.ServiceID, have, want resolve.AccessList) error {
	s, err := e.service(id)
	if err != nil {
		return err
	}
	if want == nil {
		s.Restricted = 0
		if err := e.putService(id, s); err != nil {
			return err
		}
	}
	added := e.addPrefixes(id, have, want)
	if want != nil {
		s.Restricted = 1
		if err := e.putService(id, s); err != nil {
			return errors.Join(added, err)
		}
	}
	if e.access[id.Suffix] = want; want == nil {
		delete(e.access, id.Suffix)
	}
	for _, p := range have {
		if slices.Contains(want, p) {
			continue
		}
		if err := e.maps.Guards.Delete(accessKey(id, p)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			added = errors.Join(added, err)
		}
	}
	return added
}

func (e *Edge) addPrefixes(id sid.ServiceID, have, want resolve.AccessList) error {
	for _, p := range want {
		if slices.Contains(have, p) {
			continue
		}
		if err := e.maps.Guards.Put(accessKey(id, p), uint8(1)); err != nil {
			return fmt.Errorf("%v/%d and what comes behind it (the table has room for %d): %w", p.Locator.Addr(0), p.Bits, e.maps.Guards.MaxEntries(), err)
		}
	}
	return nil
}

func accessKey(id sid.ServiceID, p resolve.Prefix) *edgeAccessKey {
	return &edgeAccessKey{Bits: sid.SuffixBits + uint32(p.Bits), Suffix: half(uint64(id.Suffix)), Locator: half(uint64(p.Locator))}
}

// readAccess learns what an adopted edge has.
func (e *Edge) readAccess() error {
	found := map[sid.Suffix][]resolve.Prefix{}
	var key edgeAccessKey
	var one uint8
	it := e.maps.Guards.Iterate()
	for it.Next(&key, &one) {
		s := sid.Suffix(binary.BigEndian.Uint64(key.Suffix[:]))
		found[s] = append(found[s], resolve.NewPrefix(sid.Locator(binary.BigEndian.Uint64(key.Locator[:])), int(key.Bits)-sid.SuffixBits))
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("host edge: read who may connect: %w", err)
	}
	var suffix uint64
	var s edgeService
	services := e.maps.Services.Iterate()
	for services.Next(&suffix, &s) {
		if s.Restricted != 0 {
			id := sid.Suffix(network(suffix))
			e.access[id] = resolve.NewAccessList(found[id])
		}
	}
	if err := services.Err(); err != nil {
		return fmt.Errorf("host edge: read who may connect: %w", err)
	}
	return nil
}

// Access is who may connect to a service, nil: everybody.
func (e *Edge) Access(id sid.ServiceID) resolve.AccessList {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.access[id.Suffix]
}
