package router

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/sid"
)

// A Source is a port at which packets from a locator are let in. Locator 0: all, for a router is attached there.
type Source struct {
	Ifindex int
	Locator sid.Locator
}

// Bits of enum ready.
const (
	rulesReady   = 1
	sourcesReady = 2
)

// SetSource lets packets in, or no more. It counts once the sources are complete: see Filter.
func (r *Resolver) SetSource(s Source, let bool) error {
	if r.sources[s] == let {
		return nil
	}
	r.writes++
	if s.Locator == 0 && s.Ifindex < lowPorts {
		return r.setLead(s, let)
	}
	key := resolveSourceKey{Ifindex: uint32(s.Ifindex), Locator: uint64(s.Locator)}
	if !let {
		delete(r.sources, s)
		if err := r.objs.Sources.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("packets from %v are not let in any more: %w", s.Locator, err)
		}
		return nil
	}
	if err := r.objs.Sources.Put(key, uint8(1)); err != nil {
		return fmt.Errorf("packets from %v are let in: %w", s.Locator, full(err))
	}
	r.sources[s] = true
	return nil
}

// lowPorts is LOW_PORTS.
const lowPorts = 4096

func (r *Resolver) setLead(s Source, let bool) error {
	one := uint8(0)
	if let {
		one = 1
	}
	if err := r.objs.Leads.Put(uint32(s.Ifindex), one); err != nil {
		return fmt.Errorf("packets of the router at interface %d are let in: %v: %w", s.Ifindex, let, err)
	}
	if r.sources[s] = true; !let {
		delete(r.sources, s)
	}
	return nil
}

// Sources lists what is let in where, as a snapshot.
func (r *Resolver) Sources() iter.Seq[Source] {
	return slices.Values(slices.Collect(maps.Keys(r.sources)))
}

// Filter says whether packets from other sources are dropped. Before the first Commit they are not.
func (r *Resolver) Filter(on bool) error {
	if r.filtering == on {
		return nil
	}
	r.filtering = on
	if r.config.Ready == 0 {
		return nil
	}
	r.config.Ready = r.ready()
	return r.putConfig()
}

// Filters reports whether they are, perhaps since an earlier process.
func (r *Resolver) Filters() bool { return r.filtering }

func (r *Resolver) ready() uint32 {
	if r.filtering {
		return rulesReady | sourcesReady
	}
	return rulesReady
}

func (r *Resolver) readSources() error {
	r.sources, r.filtering = map[Source]bool{}, r.config.Ready&sourcesReady != 0
	var key resolveSourceKey
	var one uint8
	it := r.objs.Sources.Iterate()
	for it.Next(&key, &one) {
		r.sources[Source{int(key.Ifindex), sid.Locator(key.Locator)}] = true
	}
	var port uint32
	leads := r.objs.Leads.Iterate()
	for leads.Next(&port, &one) {
		if one != 0 {
			r.sources[Source{Ifindex: int(port)}] = true
		}
	}
	return errors.Join(it.Err(), leads.Err())
}
