package wire

// Probe asks the edge of the host at <locator>::1 whether it is there: the bare header.
type Probe struct{ Header }

// ReturnPath is the key id of a PROBE that asks whether whoever sent a PROBE is where that one came from. It is
// answered by PROBE-ACK or not at all, docs/protocol.md §6.4.
const ReturnPath = 1

// Type is TypeProbe.
func (Probe) Type() Type { return TypeProbe }

// Append implements Message.
func (m Probe) Append(b []byte) []byte { return m.Header.append(b, TypeProbe, 0) }

// ProbeAck answers a Probe: the same bytes but for the type, so that the header's nonce and key id come back.
type ProbeAck struct{ Header }

// Type is TypeProbeAck.
func (ProbeAck) Type() Type { return TypeProbeAck }

// Append implements Message.
func (m ProbeAck) Append(b []byte) []byte { return m.Header.append(b, TypeProbeAck, 0) }
