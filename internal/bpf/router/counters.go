package router

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/cilium/ebpf"
)

// reasons are the names of enum router_reason, in its order.
var reasons = [...]string{"none", "resolved", "redirected", "refused_unknown", "refused_forbidden",
	"refused_no_instance", "refused_no_port", "dropped_refusal_limit", "expired_hop_limit", "dropped_malformed",
	"dropped_icmp", "dropped_fragment", "dropped_torn", "dropped_rewrite", "answered_gone", "dropped_gone_limit",
	"refused_by_all", "dropped_source", "resolved_past_silent"}

// Counters returns how many packets met which fate, since the maps were made.
func (r *Resolver) Counters() (map[string]uint64, error) {
	counters := make(map[string]uint64, len(reasons))
	for i, name := range reasons[1:] {
		var perCPU []uint64
		err := r.objs.Drops.Lookup(uint32(i+1), &perCPU)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			continue // the map is a former version's, which did not count this
		}
		if err != nil {
			return nil, fmt.Errorf("counter %s: %w", name, err)
		}
		for _, n := range perCPU {
			counters[name] += n
		}
	}
	return counters, nil
}

// Usage is what the tables hold and what that takes.
type Usage struct {
	Bytes     uint64 // of kernel memory, all maps
	Services  int
	Instances int // of all triples
	Nodes     int // of the tables: one for up to 16 instances of a port, and one for any port
	Room      int // nodes that there can be
}

// Usage asks the kernel for the memory of the maps.
func (r *Resolver) Usage() (Usage, error) {
	u := Usage{Services: len(r.services), Instances: r.instances, Nodes: r.nodes, Room: int(r.objs.Tables.MaxEntries())}
	for _, m := range reflect.ValueOf(r.objs.resolveMaps).Fields() {
		info, err := m.Interface().(*ebpf.Map).Info()
		if err != nil {
			return u, err
		}
		if n, ok := info.Memlock(); ok {
			u.Bytes += n
		}
	}
	return u, nil
}

// Writes counts changes of maps, so that tests can tell what a rule cost.
func (r *Resolver) Writes() uint64 { return r.writes }

// Program is what runs at each port, for those who compare it with another data plane packet by packet.
func (r *Resolver) Program() *ebpf.Program { return r.objs.Resolve }
