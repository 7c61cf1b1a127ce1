package gate

import (
	"time"

	"scaffold.dev/scaffold/internal/api"
)

// maxSignatures bounds how many requests of one host are remembered: more than one a second for as long as they count.
const maxSignatures = 600

// Signatures are those of a host's requests that were taken lately: nobody can use one again. A request of a time
// before another one's is as good, for a host's clock may be set back; who relays it cannot keep it for later, since
// the stream is the host's own (TLS). A signature is forgotten when the time in it is refused anyway.
type Signatures struct {
	taken map[string]time.Time // when, by the monotonic clock
	floor int64                // of more than are remembered: those before it are not taken any more
}

// forgetAfter is twice the skew: the time in a request may be as far ahead as behind.
const forgetAfter = 2 * api.JoinSkew

// Used reports whether the request of that time was taken already, or might have been.
func (s *Signatures) Used(signature []byte, unix int64) bool {
	_, taken := s.taken[string(signature)]
	return taken || unix < s.floor
}

// Note takes a request.
func (s *Signatures) Note(signature []byte, unix int64, now time.Time) {
	for key, at := range s.taken {
		if now.Sub(at) > forgetAfter {
			delete(s.taken, key)
		}
	}
	if len(s.taken) >= maxSignatures {
		s.taken, s.floor = nil, unix+1 // a host that floods may wait until its clock has passed that
	}
	if s.taken == nil {
		s.taken = map[string]time.Time{}
	}
	s.taken[string(signature)] = now
}
