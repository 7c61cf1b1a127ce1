package host

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// programs are what an edge without guests runs. The one for guests costs as long to load as all the others.
type programs struct {
	EdgeEgress  *ebpf.Program `ebpf:"edge_egress"`
	EdgeIngress *ebpf.Program `ebpf:"edge_ingress"`
	EdgeSteer   *ebpf.Program `ebpf:"edge_steer"`
}

// Close gives them up; links keep what they run.
func (p *programs) Close() error {
	return errors.Join(p.EdgeEgress.Close(), p.EdgeIngress.Close(), p.EdgeSteer.Close())
}

// programsFor gives the programs for links whose header has the given length.
func (e *Edge) programsFor(l2 uint32) (p programs, err error) {
	if p, ok := e.programs[l2]; ok {
		return p, nil
	}
	if err := e.loadFor(l2, false, &p); err != nil {
		return p, fmt.Errorf("host edge: load programs for links with a header of %d bytes: %w", l2, err)
	}
	e.programs[l2] = p
	return p, nil
}

// ReadyForGuests loads what the first guest needs, which takes long: AddGuest does it where nobody did it before.
func (e *Edge) ReadyForGuests() error {
	_, err := e.guestProgram()
	return err
}

// guestProgram is loaded once. Guests' links have Ethernet headers.
func (e *Edge) guestProgram() (*ebpf.Program, error) {
	e.guestLoad.Lock()
	defer e.guestLoad.Unlock()
	if e.forGuests != nil {
		return e.forGuests, nil
	}
	var p struct {
		EdgeGuest *ebpf.Program `ebpf:"edge_guest"`
	}
	if err := e.loadFor(ethernetLen, true, &p); err != nil {
		return nil, fmt.Errorf("load the program for guests: %w", err)
	}
	e.forGuests = p.EdgeGuest
	return e.forGuests, nil
}

// loadFor loads what the struct names, with the edge's maps.
func (e *Edge) loadFor(l2 uint32, guests bool, to any) error {
	spec, err := e.spec(l2, guests)
	if err != nil {
		return err
	}
	for name, m := range e.shared() {
		spec.Maps[name].MaxEntries = m.MaxEntries()
	}
	return spec.LoadAndAssign(to, &ebpf.CollectionOptions{MapReplacements: e.shared()})
}
