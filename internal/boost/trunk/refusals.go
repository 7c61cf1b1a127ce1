package trunk

import "scaffold.dev/scaffold/internal/boost/frame"

// refusalsKept is how many refusals are remembered, in case that what told one died with its connection.
const refusalsKept = 1024

// refusals are the reasons of sessions that were refused lately.
type refusals struct {
	reasons map[uint64]frame.Refusal
	order   []uint64
}

func (r *refusals) add(session uint64, why frame.Refusal) {
	if r.reasons == nil {
		r.reasons = map[uint64]frame.Refusal{}
	}
	if len(r.order) == refusalsKept {
		delete(r.reasons, r.order[0])
		r.order = append(r.order[:0], r.order[1:]...)
	}
	r.reasons[session] = why
	r.order = append(r.order, session)
}

// of is the reason of a session's refusal, 0 if it was not refused, or long ago.
func (r *refusals) of(session uint64) frame.Refusal { return r.reasons[session] }

// numbers are those that connections of a trunk had: none counts twice (docs/protocol.md §9).
type numbers struct {
	highest uint64
	lately  map[uint64]struct{}
}

// numbersKept is how far behind the highest a number may come: dials overtake each other.
const numbersKept = 1024

// take reports whether a number is new, and notes it.
func (n *numbers) take(number uint64) bool {
	if number+numbersKept <= n.highest {
		return false
	}
	if _, was := n.lately[number]; was {
		return false
	}
	if n.lately == nil {
		n.lately = map[uint64]struct{}{}
	}
	n.lately[number] = struct{}{}
	if number > n.highest {
		n.highest = number
		for old := range n.lately {
			if old+numbersKept <= number {
				delete(n.lately, old)
			}
		}
	}
	return true
}
