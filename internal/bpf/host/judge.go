package host

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/sid"
)

// A Judgement is what the edge says of a triple to clients that ask this host itself, docs/protocol.md §3.5. They ask
// before controller and routers know of the triple, which would not send them here while it is not ready.
type Judgement uint32

// The judgements of abi.h.
const (
	Fit   Judgement = 0 // as it is admitted; what is not, and has a socket, may be admitted in a moment
	Later Judgement = 1 // it may be ready in a moment
	Unfit Judgement = 2 // it is not ready, or may not serve
)

// Judge says it of a triple. Withdraw does not end it.
func (e *Edge) Judge(t sid.Triple, j Judgement) error {
	var err error
	if j == Fit {
		err = e.maps.Judged.Delete(instanceKey(t))
	} else {
		err = e.maps.Judged.Put(instanceKey(t), uint32(j))
	}
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("host edge: judge %v: %w", t, err)
	}
	return nil
}

// SweepJudgements takes back what is said of triples that are none any more. The service of a triple is known by its
// suffix alone.
func (e *Edge) SweepJudgements(keep func(sid.Triple) bool) error {
	var gone []edgeInstanceKey
	err := scan(e.maps.Judged, func(k *edgeInstanceKey, _ *uint32) bool {
		t := sid.Triple{Service: sid.ServiceID{Suffix: sid.Suffix(binary.BigEndian.Uint64(k.Suffix[:]))},
			Proto: sid.Proto(k.Proto), Port: binary.BigEndian.Uint16(k.Port[:])}
		if !keep(t) {
			gone = append(gone, *k)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("host edge: judgements: %w", err)
	}
	for i := range gone {
		if err := e.maps.Judged.Delete(&gone[i]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("host edge: take a judgement back: %w", err)
		}
	}
	return nil
}
