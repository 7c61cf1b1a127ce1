package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

// FlowFail is a host's FAIL for flows that it knows by name, all with the same peer host, docs/protocol.md §6.4.
//
//	+---------------------------------------------------------------+
//	|                       sender's locator                        |
//	|                                                               |
//	+---------------+---------------+-------------------------------+
//	|    reason     |    flows n    |               0               |
//	+---------------+---------------+-------------------------------+
//	|  n flows of 40 bytes ...                                      |
//	|  authenticity ...                                             |
type FlowFail struct {
	Header
	Locator sid.Locator
	Reason  Reason
	Flows   []Failed // 1 to 255, as many as FailRoom leaves
	Auth    Auth
}

// Failed names the address of the receiver's end that the sender does not serve: a receiver that has
// another one by now is not meant.
//
//	+---------------------------------------------------------------+
//	|  stable identifier, 16 bytes ...                              |
//	+---------------------------------------------------------------+
//	|                 epoch of the receiver's end                   |
//	+---------------+-----------------------------------------------+
//	|flags        S |                       0                       |
//	+---------------+-----------------------------------------------+
//	|                      receiver's socketID                      |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|   sender's socketID, as the receiver knows it; 0: has none    |
//	|                                                               |
//	+---------------------------------------------------------------+
type Failed struct {
	Stable netip.Addr
	Epoch  uint32
	Server bool // S, flag bit 0: the sender is the server's end
	Socket sid.SocketID
	Quote  sid.SocketID
}

const (
	flowFailLen = 12
	failedLen   = 40
)

// FailRoom is how many flows fit beside the given number of certificates.
func FailRoom(certificates int) int {
	return (MaxLen - HeaderLen - flowFailLen - authLen - certificates*CertificateLen - signatureLen) / failedLen
}

// Type is TypeFlowFail.
func (FlowFail) Type() Type { return TypeFlowFail }

// Append implements Message.
func (m FlowFail) Append(b []byte) []byte {
	b = m.Header.append(b, TypeFlowFail, flowFailLen+len(m.Flows)*failedLen+m.Auth.len())
	b = binary.BigEndian.AppendUint64(b, uint64(m.Locator))
	b = append(b, byte(m.Reason), byte(len(m.Flows)), 0, 0)
	for _, f := range m.Flows {
		stable := f.Stable.As16()
		b = append(b, stable[:]...)
		b = binary.BigEndian.AppendUint32(b, f.Epoch)
		b = append(b, serverFlag(f.Server), 0, 0, 0)
		b = binary.BigEndian.AppendUint64(b, uint64(f.Socket))
		b = binary.BigEndian.AppendUint64(b, uint64(f.Quote))
	}
	return m.Auth.append(b)
}

func parseFlowFail(h Header, body []byte) (Message, error) {
	if len(body) < flowFailLen || body[9] == 0 || len(body) < flowFailLen+int(body[9])*failedLen {
		return nil, fmt.Errorf("body of %d bytes: %w", len(body), ErrLength)
	}
	m := FlowFail{Header: h, Locator: sid.Locator(binary.BigEndian.Uint64(body)), Reason: Reason(body[8])}
	rest := body[flowFailLen:]
	for range body[9] {
		f := parseFailed(rest)
		if !validStable(f.Stable) || !f.Socket.Valid() || f.Quote != 0 && !f.Quote.Valid() {
			return nil, fmt.Errorf("flow %v, socketIDs %v and %v: %w", f.Stable, f.Socket, f.Quote, errClaim)
		}
		m.Flows, rest = append(m.Flows, f), rest[failedLen:]
	}
	auth, err := parseAuth(rest)
	m.Auth = auth
	return m, err
}

func parseFailed(b []byte) Failed {
	return Failed{
		Stable: netip.AddrFrom16([16]byte(b)),
		Epoch:  binary.BigEndian.Uint32(b[16:]),
		Server: b[20]&flagServer != 0,
		Socket: sid.SocketID(binary.BigEndian.Uint64(b[24:])),
		Quote:  sid.SocketID(binary.BigEndian.Uint64(b[32:])),
	}
}
