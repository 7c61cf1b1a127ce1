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

// answer is the flag of a PING that answers one.
const answer = 1

// Ping is the header of a PING, which has no payload. Its offset is any number, and comes back in the answer: it says
// that all frames before it on its connection have arrived.
func Ping(number uint64) Header { return Header{Type: TypePing, Offset: number} }

// Answered is the answer to a PING.
func (h Header) Answered() Header {
	return Header{Type: TypePing, Flags: answer, Offset: h.Offset}
}

// IsAnswer reports whether a PING answers one.
func (h Header) IsAnswer() bool { return h.Flags&answer != 0 }
