package kick

import "time"

// Stalled is for how long what is in flight has waited for its acknowledgement: the timeouts that went by,
// each twice the one before, and what has passed of this one. 0 where nothing timed out, and where the peer answers the
// probes of its closed window.
func (s *Socket) Stalled() time.Duration {
	if s.InFlight() == 0 && (s.Queued() == 0 || s.Probes == 0) || s.Backoff == 0 {
		return 0
	}
	first := s.RTO >> s.Backoff
	return max(0, s.RTO-first+s.RTO-max(0, min(s.Due, s.RTO)))
}

// Choked says that this host's own queues, or its edge, dropped what the connection tried to send: nothing is in
// flight, and more tries failed than its timer was doubled, which happens only for one that had no answer. The
// kernel tries again every half second then, and gives the connection up at the try of net.ipv4.tcp_retries2,
// fifteen: after 7.5 seconds, where one whose bytes are lost further on has a quarter of an hour. Kick begins
// that count anew.
func (s *Socket) Choked() bool {
	return s.State.synchronized() && !s.Repair && s.Timer == WindowProbe && s.InFlight() == 0 && s.Queued() > 0 && s.Probes > s.Backoff
}
