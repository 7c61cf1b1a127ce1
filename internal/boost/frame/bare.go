package frame

// Frames without a payload of their own: the header says all, but for the bytes of DATA.

// End is the header of an END, which has no payload: the stream has so many bytes, then the end host's FIN.
func End(session, offset uint64) Header {
	return Header{Type: TypeEnd, Session: session, Offset: offset}
}

// Chunk is the header of a DATA frame, whose payload follows it.
func Chunk(session, offset uint64, length uint32) Header {
	return Header{Type: TypeData, Length: length, Session: session, Offset: offset}
}

// Retire is the header of a RETIRE, which has no payload: the sender needs nothing more of the session.
func Retire(session uint64) Header { return Header{Type: TypeRetire, Session: session} }

const (
	// answer is the flag of a PING that answers one.
	answer = 1
	// wants is the flag of a PING whose offset is how many data connections its sender wants.
	wants = 2
	// MaxConnections is how many data connections of a trunk an agent may want.
	MaxConnections = 64
)

// Ping is the header of a PING, which has no payload. Its offset is any number, and comes back in the answer: it says
// that all frames before it on its connection have arrived.
func Ping(number uint64) Header { return Header{Type: TypePing, Offset: number} }

// Answered is the answer to a PING.
func (h Header) Answered() Header {
	return Header{Type: TypePing, Flags: answer, Offset: h.Offset}
}

// IsAnswer reports whether a PING answers one.
func (h Header) IsAnswer() bool { return h.Flags&answer != 0 }

// Want is a PING of the agent that was called: for what it sends it wants so many data connections, which the other one
// opens. An agent that does not know the flag answers it as any other PING. Numbers beyond 1 to MaxConnections become the nearest.
func Want(connections int) Header {
	return Header{Type: TypePing, Flags: wants, Offset: uint64(min(max(connections, 1), MaxConnections))}
}

// Wanted is how many data connections the sender of a PING wants; false: it says nothing of that, or asks for what nobody may.
func (h Header) Wanted() (connections int, ok bool) {
	if h.Type != TypePing || h.IsAnswer() || h.Flags&wants == 0 || h.Offset < 1 || h.Offset > MaxConnections {
		return 0, false
	}
	return int(h.Offset), true
}
