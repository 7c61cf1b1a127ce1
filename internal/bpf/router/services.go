package router

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// errTooBig is how a hash map says that it is full.
var errTooBig error = unix.E2BIG

// A Service decides how packets that find no table are refused, docs/protocol.md §3.5.
type Service struct {
	Instances uint32 // of all its triples
	Forbidden bool
}

// SetService says that the service exists.
func (r *Resolver) SetService(id sid.ServiceID, s Service) error {
	if old, ok := r.services[id]; ok && old == s {
		return nil
	}
	state := resolveServiceState{Ss: id.SS, Instances: s.Instances}
	if s.Forbidden {
		state.Forbidden = 1
	}
	for _, key := range serviceKeys(id) {
		r.writes++
		if err := r.objs.Services.Put(key, state); err != nil {
			return fmt.Errorf("service %v: %w", id, full(err))
		}
	}
	r.services[id] = s
	return nil
}

// RemoveService makes the service unknown; its tables are removed by themselves.
func (r *Resolver) RemoveService(id sid.ServiceID) error {
	if _, ok := r.services[id]; !ok {
		return nil
	}
	for _, key := range serviceKeys(id) {
		r.writes++
		if err := r.objs.Services.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("service %v: %w", id, err)
		}
	}
	delete(r.services, id)
	return nil
}

// serviceKeys are the names that a packet may have for the service: with its ssID, and without it once
// the packet was sent to this AS.
func serviceKeys(id sid.ServiceID) [2]resolveServiceKey {
	return [2]resolveServiceKey{{Suffix: uint64(id.Suffix), Ss: id.SS}, {Suffix: uint64(id.Suffix)}}
}

// Services lists those that exist, as a snapshot.
func (r *Resolver) Services() iter.Seq[sid.ServiceID] {
	return slices.Values(slices.Collect(maps.Keys(r.services)))
}

// readMaps learns what the maps hold: nothing when they are new.
func (r *Resolver) readMaps() error {
	r.tables = map[sid.Triple][]resolve.Node{}
	r.services = map[sid.ServiceID]Service{}
	var key resolveTableKey
	var node resolveTableNode
	it := r.objs.Tables.Iterate()
	for it.Next(&key, &node) {
		t, n := readNode(key, node)
		r.remember(t, append(r.tables[t], n))
	}
	return errors.Join(it.Err(), r.readServices(), r.readLeft(), r.readSources())
}

func (r *Resolver) readServices() error {
	var key resolveServiceKey
	var state resolveServiceState
	it := r.objs.Services.Iterate()
	for it.Next(&key, &state) {
		if key.Ss != 0 {
			id := sid.ServiceID{SS: key.Ss, Suffix: sid.Suffix(key.Suffix)}
			r.services[id] = Service{Instances: state.Instances, Forbidden: state.Forbidden != 0}
		}
	}
	return it.Err()
}
