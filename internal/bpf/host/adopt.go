package host

import (
	"fmt"

	"scaffold.dev/scaffold/wire"
)

// An Adoption is a connection of another instance with which one of this host goes on, docs/protocol.md §6.5.
type Adoption struct {
	Flow        Tuple // as the new socket will see it: service address and port, stable identifier and client's port
	Local, Peer Addr
	Transport   wire.Transport
}

// CanAdopt says why this host cannot continue connections of others, nil where it can. It belongs to the
// namespace of the calling thread.
func (e *Edge) CanAdopt() error { return errUnsupported }

// Adopt enters the flow and lets the client's next acknowledgement, which Nudge sends, become an accepted
// connection of the service's listener. Until then all else of the flow is dropped. It may be repeated. What
// comes of it times out. A socket that this host has of the same connection must be reset first.
func (e *Edge) Adopt(a Adoption) error { return fmt.Errorf("adopt %v: %w", a.Flow, errUnsupported) }

// Nudge sends, for the client's socket of the flow, the acknowledgement that its new instance waits for, and
// behind it a segment that this instance answers; window is the socket's. The flow is bound to the new
// instance before. Repeat it until Heard tells of an answer.
func (e *Edge) Nudge(flow Tuple, t wire.Transport, window uint16) error {
	return fmt.Errorf("nudge %v: %w", flow, errUnsupported)
}

// Heard is when the last packet of the peer was taken under the flow's newest socketID, CLOCK_MONOTONIC in ns;
// 0: none yet.
func (e *Edge) Heard(flow Tuple) (uint64, error) { return 0, errUnsupported }
