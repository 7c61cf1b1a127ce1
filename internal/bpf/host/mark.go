package host

import (
	"math/rand/v2"
	"net/netip"

	"scaffold.dev/scaffold/internal/core/flow"
	"scaffold.dev/scaffold/sid"
)

// Offered gives a random socketID that this host offers to a client the form by which the edge knows its confirmation,
// docs/protocol.md §6.7: it is not among what is unsolicited then.
func (e *Edge) Offered(client Addr, id sid.SocketID) sid.SocketID {
	return sid.SocketID(flow.Mark(e.secret, uint64(id), client.IP(), flow.Offer))
}

// ProbeNonce makes the nonce of a PROBE from this host's own address to another host's. The edge takes answers with such
// nonces alone.
func (e *Edge) ProbeNonce() uint64 {
	return flow.Mark(e.secret, rand.Uint64(), netip.Addr{}, flow.Nonce)
}

// ProbeNonceOf is ProbeNonce of a number that the caller knows again.
func (e *Edge) ProbeNonceOf(n uint32) uint64 {
	return flow.Mark(e.secret, uint64(n), netip.Addr{}, flow.Nonce)
}
