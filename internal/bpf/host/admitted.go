package host

import (
	"encoding/binary"
	"fmt"

	"scaffold.dev/scaffold/sid"
)

// Admitted returns the triples whose first packets are let in. A daemon that adopted the edge compares
// them with the sockets that are left.
func (e *Edge) Admitted() ([]sid.Triple, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []sid.Triple
	var key edgeInstanceKey
	var one uint32
	it := e.maps.Instances.Iterate()
	for it.Next(&key, &one) {
		suffix := sid.Suffix(binary.BigEndian.Uint64(key.Suffix[:]))
		var s edgeService
		if err := e.maps.Services.Lookup(network(uint64(suffix)), &s); err != nil {
			return nil, fmt.Errorf("host edge: service of suffix %v: %w", suffix, err)
		}
		all = append(all, sid.Triple{
			Service: sid.ServiceID{SS: binary.BigEndian.Uint32(s.Upper[4:]), Suffix: suffix},
			Proto:   sid.Proto(key.Proto), Port: binary.BigEndian.Uint16(key.Port[:]),
		})
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("host edge: list instances: %w", err)
	}
	return all, nil
}
