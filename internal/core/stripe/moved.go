package stripe

import "scaffold.dev/scaffold/internal/boost/frame"

// A session may go on over another trunk, to another agent, while this one's is lost. What of it is here is asked for then.

// Reach is how far a stream has come in: all bytes before arrived are here, those before delivered went to the end host. Over
// says that its length is known: it has its end, or was cut.
func (r *Receiver) Reach(session uint64) (delivered, arrived uint64, over bool) {
	if in := r.streams[session]; in != nil {
		delivered, arrived, over = in.delivered, in.arrived, in.kind != 0
	}
	return delivered, arrived, over
}

// Aborted reports whether the stream ends without its end.
func (s *Sender) Aborted(session uint64) bool {
	o := s.streams[session]
	return o != nil && o.end.kind == frame.TypeAbort
}

// EachKept calls f with the chunks of a stream that are kept, in order.
func (s *Sender) EachKept(session uint64, f func(Chunk)) {
	o := s.streams[session]
	if o == nil {
		return
	}
	for i := range o.chunks.len() {
		f(o.chunks.at(i).Chunk)
	}
}
