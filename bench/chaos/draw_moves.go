package chaos

import "time"

// Hosts that move have one of their two links; the other one is unplugged.

// link is the router that a host hangs on, and the one that it does not.
func (s *schedule) link(h string) (here, there string) {
	up := s.world.Uplinks[h]
	return up[s.on[h]], up[1-s.on[h]]
}

// mover picks a host that can move and whose link nothing else breaks in this batch.
func (s *schedule) mover(from []string) (string, bool) {
	from = s.world.movers(from)
	if len(from) == 0 {
		return "", false
	}
	h := s.pick(from)
	return h, s.take("link of " + h)
}

// jump is a break and the link elsewhere after it; it returns when that is there.
func (s *schedule) jump(h string, t, gone time.Duration) time.Duration {
	here, there := s.link(h)
	s.at(t, "unplug %s %s", h, here)
	s.at(t+gone, "heal %s %s", h, there)
	s.on[h] = 1 - s.on[h]
	return t + gone
}

func (s *schedule) hard(t time.Duration) bool {
	h, ok := s.mover(s.world.Hosts)
	if ok {
		s.jump(h, t, s.between(20, 1500))
	}
	return ok
}

// soft has both links for a while.
func (s *schedule) soft(t time.Duration) bool {
	h, ok := s.mover(s.world.Hosts)
	if !ok || !s.take("daemon "+h, "daemon "+s.world.Controller) { // both links at once take asking
		return false
	}
	here, there := s.link(h)
	s.at(t, "heal %s %s", h, there)
	s.at(t+time.Millisecond, "attached %s %s", h, there)
	t += s.between(10, 200)
	s.at(t, "shift %s %s %s", h, here, there)
	s.at(t+s.between(50, 300), "unplug %s %s", h, here)
	s.on[h] = 1 - s.on[h]
	return true
}

// both moves a client and a server within 10 ms.
func (s *schedule) both(t time.Duration) bool {
	c, ok := s.mover(s.world.Clients())
	if !ok {
		return false
	}
	h, ok := s.mover(s.world.Servers)
	if !ok {
		return false
	}
	gone := s.between(20, 500)
	s.jump(c, t, gone)
	s.jump(h, t+s.between(0, 10), gone)
	return true
}

// chain moves on before the last move can have settled.
func (s *schedule) chain(t time.Duration) bool {
	h, ok := s.mover(s.world.Hosts)
	if !ok {
		return false
	}
	for range 2 + s.rng.IntN(3) {
		t = s.jump(h, t, s.between(10, 200)) + s.between(10, 300)
	}
	return true
}
