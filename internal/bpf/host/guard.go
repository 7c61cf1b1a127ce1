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

// SetGuard says who may connect to a service, docs/protocol.md §5.7: first packets from elsewhere are
// refused. It changes without a moment in which too many may; where there is no room for all, some may not
// who should, and the error says so.
func (e *Edge) SetGuard(id sid.ServiceID, g resolve.Guard) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	have := e.guards[id.Suffix]
	if have == nil && g == nil {
		return nil
	}
	err := e.guard(id, have, g)
	if err != nil {
		return fmt.Errorf("host edge: who may connect to %v: %w", id, err)
	}
	return nil
}

func (e *Edge) guard(id sid.ServiceID, have, want resolve.Guard) error {
	s, err := e.service(id)
	if err != nil {
		return err
	}
	if want == nil {
		s.Guarded = 0
		if err := e.putService(id, s); err != nil {
			return err
		}
	}
	added := e.addPrefixes(id, have, want)
	if want != nil {
		s.Guarded = 1
		if err := e.putService(id, s); err != nil {
			return errors.Join(added, err)
		}
	}
	if e.guards[id.Suffix] = want; want == nil {
		delete(e.guards, id.Suffix)
	}
	for _, p := range have {
		if slices.Contains(want, p) {
			continue
		}
		if err := e.maps.Guards.Delete(guardKey(id, p)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			added = errors.Join(added, err)
		}
	}
	return added
}

func (e *Edge) addPrefixes(id sid.ServiceID, have, want resolve.Guard) error {
	for _, p := range want {
		if slices.Contains(have, p) {
			continue
		}
		if err := e.maps.Guards.Put(guardKey(id, p), uint8(1)); err != nil {
			return fmt.Errorf("%v/%d and what comes behind it (the table has room for %d): %w", p.Locator.Addr(0), p.Bits, e.maps.Guards.MaxEntries(), err)
		}
	}
	return nil
}

func guardKey(id sid.ServiceID, p resolve.Prefix) *edgeGuardKey {
	return &edgeGuardKey{Bits: sid.SuffixBits + uint32(p.Bits), Suffix: half(uint64(id.Suffix)), Locator: half(uint64(p.Locator))}
}

// readGuards learns what an adopted edge has.
func (e *Edge) readGuards() error {
	found := map[sid.Suffix][]resolve.Prefix{}
	var key edgeGuardKey
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
		if s.Guarded != 0 {
			id := sid.Suffix(network(suffix))
			e.guards[id] = resolve.NewGuard(found[id])
		}
	}
	if err := services.Err(); err != nil {
		return fmt.Errorf("host edge: read who may connect: %w", err)
	}
	return nil
}

// Guard is who may connect to a service, nil: everybody.
func (e *Edge) Guard(id sid.ServiceID) resolve.Guard {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.guards[id.Suffix]
}
