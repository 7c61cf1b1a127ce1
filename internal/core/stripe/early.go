package stripe

// Early is how many bytes of a stream may go out before its peer has answered OPEN (docs/protocol.md §9): who takes an OPEN
// has memory for so many, whoever asks.
const Early = MinWindow

// Early has a session that was just opened send before its peer has answered: up to Early bytes, on the connection that
// Follow names and no other. On another one they might overtake the OPEN, and be those of a session that nobody knows.
func (s *Sender) Early(session uint64) {
	if o := s.streams[session]; o != nil {
		o.early, o.credit = true, Early
		s.touch(o)
	}
}

// Follow says which connection carries a session's OPEN: what is early goes out there, behind it. Where that connection dies
// it waits until another one carries the OPEN.
func (s *Sender) Follow(session uint64, c Conn) {
	if o := s.streams[session]; o != nil && o.early {
		o.only = s.path(c)
		s.touch(o)
	}
}

// Answered says that the peer knows the session: nothing is early any more.
func (s *Sender) Answered(session uint64) {
	if o := s.streams[session]; o != nil && o.early {
		o.early, o.only = false, nil
		s.touch(o)
	}
}

// goesBy reports whether a connection may carry the stream.
func (o *outgoing) goesBy(p *path) bool { return !o.early || o.only == p }

// turn is whose turn it is of those who may send on a connection, and which chunk; nil: nobody's.
func (s *Sender) turn(p *path) (*outgoing, int) {
	for others := 0; others < s.turns.len(); {
		o := *s.turns.at(0)
		i := o.front()
		switch {
		case i < 0:
			s.turns.pop().inTurn = false
		case !o.goesBy(p):
			s.turns.push(s.turns.pop())
			others++
		default:
			return o, i
		}
	}
	return nil, -1
}
