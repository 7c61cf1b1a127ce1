package host

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/sid"
)

// Answered finds the flow of a client's datagram socket whose peer has answered it from the remote port of the tuple, and
// which was asked at another one, docs/protocol.md §3.4.
func (e *Edge) Answered(t Tuple) (Flow, bool, error) {
	if t.Proto != sid.UDP || t.Remote.Port() == 0 {
		return Flow{}, false, nil
	}
	key := t.key()
	from := binary.NativeEndian.Uint16(key.Rport[:])
	key.Rport = [2]byte{}
	var all edgeAnswerPorts
	err := e.maps.Answers.Lookup(&key, &all)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return Flow{}, false, nil
	}
	if err != nil {
		return Flow{}, false, fmt.Errorf("host edge: look up who answered %v from %v: %w", t.Local, t.Remote, err)
	}
	for _, v := range all.Port {
		if v == 0 || uint16(v) != from {
			continue
		}
		f, ok, err := e.lookup(askedAt(key, v))
		return f, ok && bornAs(f.Birth, v), err
	}
	return Flow{}, false, nil
}

// askedAt is the key of the flow to which a number of struct answer_ports leads.
func askedAt(key edgeFlowKey, v uint64) *edgeFlowKey {
	if asked := uint16(v >> 16); asked != 0 { // a server's flow has its client's port there
		binary.NativeEndian.PutUint16(key.Rport[:], asked)
	}
	return &key
}

// bornAs reports whether a number of struct answer_ports means the flow, and not one before it.
func bornAs(birth sid.SocketID, v uint64) bool {
	b := half(uint64(birth))
	return binary.NativeEndian.Uint32(b[4:]) == uint32(v>>32)
}

// sweepAnswerPorts forgets the ports of sockets and flows that are gone.
func (e *Edge) sweepAnswerPorts() error {
	var over []edgeFlowKey
	there := func(key *edgeFlowKey, v uint64) bool {
		for _, m := range []*ebpf.Map{e.maps.EgressFlows, e.maps.EgressHalf} {
			var out edgeEgressFlow
			if m.Lookup(key, &out) == nil {
				return bornAs(sid.SocketID(binary.BigEndian.Uint64(out.Birth[:])), v)
			}
		}
		return false
	}
	err := scan(e.maps.Answers, func(key *edgeFlowKey, all *edgeAnswerPorts) bool {
		for _, v := range all.Port {
			if v != 0 && there(askedAt(*key, v), v) {
				return true
			}
		}
		over = append(over, *key)
		return true
	})
	if err != nil {
		return err
	}
	for i := range over {
		if err := e.maps.Answers.Delete(&over[i]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("host edge: forget the ports of answers: %w", err)
		}
	}
	return nil
}
