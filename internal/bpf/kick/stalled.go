package kick

import "time"

// Stalled is for how long what is in flight has waited for its acknowledgement: the timeouts that went by,
// each twice the one before, and what has passed of this one. 0 where nothing timed out.
func (s *Socket) Stalled() time.Duration {
	if s.InFlight() == 0 && s.Queued() == 0 || s.Backoff == 0 {
		return 0
	}
	first := s.RTO >> s.Backoff
	return max(0, s.RTO-first+s.RTO-max(0, min(s.Due, s.RTO)))
}
