package mobility

// Counts are how often messages between hosts were refused, ignored or lost on this side, by reason.
func (s *Sessions) Counts() map[string]uint64 {
	all := map[string]uint64{}
	for what, n := range s.counters {
		all["session_"+what] = n
	}
	if s.engine != nil {
		for what, n := range s.engine.Counters() {
			all["session_"+what] += n
		}
	}
	return all
}
