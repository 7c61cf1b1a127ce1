package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

// A Claim is where one end of one flow says it is, docs/protocol.md §6.2.
//
//	+---------------------------------------------------------------+
//	|                                                               |
//	|                       stable identifier                       |
//	|                                                               |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                    epoch of this end                          |
//	+---------------------------------------------------------------+
//	|              epoch of the other end that it has seen          |
//	+---------------------------------------------------------------+
//	|                     sender's socketID, new                    |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|              receiver's socketID, as the sender knows it      |
//	|                                                               |
//	+---------------+---------------+-------------------------------+
//	|flags        S | socketIDs n   |               0               |
//	+---------------+---------------+-------------------------------+
//	|  n earlier socketIDs of the sender, the oldest first ...      |
type Claim struct {
	Stable netip.Addr   // the client's first wire address: names the flow
	Server bool         // S, flag bit 0: the sender is the server's end
	Epoch  uint32       // moves of the sender's end so far
	Seen   uint32       // the last epoch of the receiver's end that the sender took
	Socket sid.SocketID // of the sender
	Quote  sid.SocketID // of the receiver: who does not know it cannot speak; 0 in an unresolved RSYN
	// Chain is what the sender was called since its peer last confirmed an address of it, that one
	// first: a copy of the end cannot know what the original took later. At most MaxChain.
	Chain []sid.SocketID
}

// MaxChain is how many earlier socketIDs a claim can name.
const MaxChain = 8

const (
	claimLen   = 44
	flagServer = 1 << 0
)

// Len is the claim's size in bytes.
func (c *Claim) Len() int { return claimLen + 8*len(c.Chain) }

func (c *Claim) append(b []byte) []byte {
	if len(c.Chain) > MaxChain {
		panic(fmt.Sprintf("wire: claim with %d earlier socketIDs, at most %d", len(c.Chain), MaxChain))
	}
	stable := c.Stable.As16()
	b = append(b, stable[:]...)
	b = binary.BigEndian.AppendUint32(b, c.Epoch)
	b = binary.BigEndian.AppendUint32(b, c.Seen)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Socket))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Quote))
	b = append(b, serverFlag(c.Server), byte(len(c.Chain)), 0, 0)
	for _, s := range c.Chain {
		b = binary.BigEndian.AppendUint64(b, uint64(s))
	}
	return b
}

func serverFlag(server bool) byte {
	if server {
		return flagServer
	}
	return 0
}

// errClaim is in the errors of claims that no sender of this version makes.
var errClaim = errors.New("malformed claim")

func parseClaim(b []byte) (c Claim, rest []byte, err error) {
	if len(b) < claimLen {
		return c, nil, fmt.Errorf("claim of %d bytes, want at least %d: %w", len(b), claimLen, ErrLength)
	}
	c = Claim{
		Stable: netip.AddrFrom16([16]byte(b)),
		Epoch:  binary.BigEndian.Uint32(b[16:]),
		Seen:   binary.BigEndian.Uint32(b[20:]),
		Socket: sid.SocketID(binary.BigEndian.Uint64(b[24:])),
		Quote:  sid.SocketID(binary.BigEndian.Uint64(b[32:])),
		Server: b[40]&flagServer != 0,
	}
	n := int(b[41])
	if n > MaxChain || len(b) < claimLen+8*n {
		return c, nil, fmt.Errorf("claim with %d earlier socketIDs: %w", n, ErrLength)
	}
	for i := range n {
		c.Chain = append(c.Chain, sid.SocketID(binary.BigEndian.Uint64(b[claimLen+8*i:])))
	}
	return c, b[claimLen+8*n:], c.check()
}

func (c *Claim) check() error {
	if !validStable(c.Stable) || !c.Socket.Valid() || c.Quote != 0 && !c.Quote.Valid() {
		return fmt.Errorf("stable identifier %v, socketIDs %v and %v: %w", c.Stable, c.Socket, c.Quote, errClaim)
	}
	for _, s := range c.Chain {
		if !s.Valid() {
			return fmt.Errorf("earlier socketID %v: %w", s, errClaim)
		}
	}
	return nil
}

// validStable: a stable identifier is a locator with a socketID behind it.
func validStable(a netip.Addr) bool { return sid.SocketID(sid.Low(a)).Valid() && !a.Is4In6() }
