package host

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// ErrSuffix is in the error of Admit when two services of one host share a suffix: only the suffix
// reaches the host, so one of them must go elsewhere.
var ErrSuffix = errors.New("another service of this host has the same suffix")

// ErrNoRoom is in the error of Admit when the edge has as many instances, or services, as it can have.
var ErrNoRoom = errors.New("this host serves as many instances as it can")

// Datagrams says how a service's datagram flows bind, docs/protocol.md §3.
type Datagrams uint8

// The ways datagrams bind.
const (
	Bound   Datagrams = iota // the first reply binds the flow
	Unbound                  // each datagram is resolved; replies come from anyone
	Unset                    // resolved in both directions, no state; needs sockets bound to a service
)

func (d Datagrams) String() string {
	switch d {
	case Bound:
		return "bound"
	case Unbound:
		return "unbound"
	case Unset:
		return "unset"
	}
	return fmt.Sprintf("Datagrams(%d)", uint8(d))
}

// A Policy is what the edge does differently for a service. It applies to flows that begin afterwards.
type Policy struct {
	Datagrams Datagrams
	DSCP      uint8 // 0: the socket's own
	Continue  bool  // a connection whose process dies goes on at another instance: Died, not an RST
}

// How first packets for a triple are let in, enum admission.
const (
	always         uint32 = 1
	whileListening uint32 = 2
)

// Admit lets first packets for the triple in.
func (e *Edge) Admit(t sid.Triple) error { return e.admit(t, always) }

// AdmitListening lets first packets for the triple in while a socket of this namespace, or of a guest that takes them
// (SetOwners), has the service's address and the port. Others go back to the network, which finds another instance,
// whether or not a daemon is there to withdraw the triple.
func (e *Edge) AdmitListening(t sid.Triple) error { return e.admit(t, whileListening) }

func (e *Edge) admit(t sid.Triple, how uint32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.service(t.Service)
	if err != nil {
		return fmt.Errorf("host edge: admit %v: %w", t, err)
	}
	switch err := e.maps.Instances.Update(instanceKey(t), how, ebpf.UpdateNoExist); {
	case errors.Is(err, ebpf.ErrKeyExist): // perhaps as a former version does
		if err := e.maps.Instances.Put(instanceKey(t), how); err != nil {
			return fmt.Errorf("host edge: admit %v: %w", t, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("host edge: admit %v: %w", t, roomless(err))
	}
	s.Live++
	if err := e.putService(t.Service, s); err != nil {
		return errors.Join(roomless(err), e.maps.Instances.Delete(instanceKey(t)))
	}
	return nil
}

// roomless says of a map that is full what that means.
func roomless(err error) error {
	if errors.Is(err, unix.E2BIG) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return err
}

// Withdraw bounces later first packets for the triple back to the network, which finds another instance.
func (e *Edge) Withdraw(t sid.Triple) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch err := e.maps.Instances.Delete(instanceKey(t)); {
	case errors.Is(err, ebpf.ErrKeyNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("host edge: withdraw %v: %w", t, err)
	}
	s, err := e.service(t.Service)
	if err != nil {
		return fmt.Errorf("host edge: withdraw %v: %w", t, err)
	}
	s.Live--
	return e.putService(t.Service, s)
}

// SetService makes the service known and sets its policy, at its clients and at its servers.
func (e *Edge) SetService(id sid.ServiceID, p Policy) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.Datagrams > Unset || p.DSCP > 63 {
		return fmt.Errorf("host edge: policy of %v: datagrams %v, dscp %d: want bound, unbound or unset, and at most 63", id, p.Datagrams, p.DSCP)
	}
	v := edgePolicy{Datagrams: uint8(p.Datagrams), Dscp: p.DSCP << 2}
	if p.Continue {
		v.Continues = 1
	}
	if err := e.maps.Policies.Put(e.cfg.Space.ServiceAddr(id).As16(), &v); err != nil {
		return fmt.Errorf("host edge: policy of %v: %w", id, err)
	}
	if p.Datagrams != Unset {
		return nil // only unset sources are restored from their suffix
	}
	s, err := e.service(id)
	if err != nil {
		return fmt.Errorf("host edge: policy of %v: %w", id, err)
	}
	return e.putService(id, s)
}

func instanceKey(t sid.Triple) *edgeInstanceKey {
	return &edgeInstanceKey{Suffix: half(uint64(t.Service.Suffix)), Port: portBytes(t.Port), Proto: uint8(t.Proto)}
}

// service reads what the suffix means here, or says what it would mean.
func (e *Edge) service(id sid.ServiceID) (edgeService, error) {
	want := edgeService{Upper: half(uint64(sid.LocatorOf(e.cfg.Space.ServiceAddr(id))))}
	var s edgeService
	err := e.maps.Services.Lookup(network(uint64(id.Suffix)), &s)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return want, nil
	}
	if err == nil && s.Upper != want.Upper && s.Live > 0 {
		return s, ErrSuffix
	}
	s.Upper = want.Upper
	return s, err
}

// putService writes what the suffix means here. Of a service that was withdrawn it stays known where late first packets
// go, until the room is needed.
func (e *Edge) putService(id sid.ServiceID, s edgeService) error {
	err := e.maps.Services.Put(network(uint64(id.Suffix)), &s)
	if errors.Is(err, unix.E2BIG) {
		if err := e.forgetWithdrawn(); err != nil {
			return err
		}
		err = e.maps.Services.Put(network(uint64(id.Suffix)), &s)
	}
	if err != nil {
		return fmt.Errorf("host edge: service %v: %w", id, err)
	}
	return nil
}

// forgetWithdrawn makes room among the services. Those stay that have an access list, and those whose answers come without
// a source of their own (Unset).
func (e *Edge) forgetWithdrawn() error {
	var gone [][8]byte
	err := scan(e.maps.Services, func(suffix *[8]byte, s *edgeService) bool {
		if s.Live == 0 && s.Restricted == 0 {
			var p edgePolicy
			err := e.maps.Policies.Lookup(append(s.Upper[:], suffix[:]...), &p)
			if err != nil || Datagrams(p.Datagrams) != Unset {
				gone = append(gone, *suffix)
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("host edge: services: %w", err)
	}
	for _, suffix := range gone {
		if err := e.maps.Services.Delete(&suffix); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("host edge: forget a service that was withdrawn: %w", err)
		}
	}
	return nil
}
