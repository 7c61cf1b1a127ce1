package host

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/wire"
)

// Nudge sends, for the client's socket of the flow, the acknowledgement that its new instance waits for, and
// behind it a segment from before the window, which the instance answers; window is the socket's. The flow
// is blocked and bound to the new instance before. Repeat it until Heard tells of an answer: it does no harm.
func (e *Edge) Nudge(flow Tuple, t wire.Transport, window uint16) error {
	for _, seq := range []uint32{t.SndUna, t.SndUna - 1} {
		if err := e.inject(flow.Guest, 0, appendNudge(nil, flow, &t, seq, window), flow.Remote.Addr()); err != nil {
			return fmt.Errorf("nudge %v: %w", flow.Remote, err)
		}
	}
	return nil
}

const (
	optionNOP        = 1
	optionTimestamps = 8
)

// appendNudge appends a bare acknowledgement as the client's socket would send it. The edge rewrites it on
// its way out like any of the flow's.
func appendNudge(b []byte, flow Tuple, t *wire.Transport, seq uint32, window uint16) []byte {
	s := header.Segment{Src: flow.Local.Port(), Dst: flow.Remote.Port(), Seq: seq, Ack: t.RcvNxt, Flags: header.ACK, Window: window}
	if t.Timestamps {
		s.Options = append(s.Options, optionNOP, optionNOP, optionTimestamps, 10)
		s.Options = binary.BigEndian.AppendUint32(s.Options, t.TSVal)
		s.Options = binary.BigEndian.AppendUint32(s.Options, t.TSEcr)
	}
	at := len(b)
	b = s.Append(header.AppendIPv6(b, flow.Local.Addr(), flow.Remote.Addr(), header.TCP, ownHops, s.Len()))
	header.Seal(b[at:])
	return b
}

// Heard is when the last packet came under the flow's newest socketID, CLOCK_MONOTONIC in ns with the grain
// of a tick. 0: the flow was blocked and bound anew, and its new peer has not been heard yet.
func (e *Edge) Heard(flow Tuple) (uint64, error) {
	var out edgeEgressFlow
	var in edgeIngressFlow
	key := flow.key()
	err := e.maps.EgressFlows.Lookup(&key, &out)
	if err == nil {
		err = e.maps.IngressFlows.Lookup(&out.Newest, &in)
	}
	switch {
	case errors.Is(err, ebpf.ErrKeyNotExist):
		return 0, fmt.Errorf("host edge: %v: no such flow", flow)
	case err != nil:
		return 0, fmt.Errorf("host edge: look up %v: %w", flow, err)
	case in.Watch&watchHear != 0:
		return 0, nil
	}
	return in.Seen, nil
}
