package chaos

import "time"

// replug takes a link down and up again in the same place.
func (s *schedule) replug(t time.Duration) bool {
	h := s.pick(s.world.Hosts)
	if !s.take("link of " + h) {
		return false
	}
	here, _ := s.place(h)
	s.at(t, "unplug %s %s", h, here)
	s.at(t+s.between(20, 800), "heal %s %s", h, here)
	return true
}

// place is link for hosts with one link too.
func (s *schedule) place(h string) (here, there string) {
	if len(s.world.Uplinks[h]) < 2 {
		return s.world.Uplinks[h][0], ""
	}
	return s.link(h)
}

// server picks one to disturb; at most one in a batch, so that others are there.
func (s *schedule) server() (string, bool) {
	h := s.pick(s.world.Servers)
	return h, s.take("serving")
}

// steered is a server about which the controller is asked, which must be there.
func (s *schedule) steered() (string, bool) {
	if s.taken["serving"] || !s.take("daemon "+s.world.Controller) {
		return "", false
	}
	return s.server()
}

func (s *schedule) crash(t time.Duration) bool {
	h, ok := s.server()
	if ok {
		s.at(t, "crash %s", h)
		s.at(t+s.between(50, 600), "serve %s", h)
	}
	return ok
}

func (s *schedule) freeze(t time.Duration) bool {
	h, ok := s.server()
	if ok {
		s.at(t, "freeze %s", h)
		s.at(t+s.between(50, 1500), "thaw %s", h)
	}
	return ok
}

func (s *schedule) drain(t time.Duration) bool {
	h, ok := s.steered()
	if ok {
		s.at(t, "wait-drain %s", h)
		s.at(t+s.between(50, 800), "undrain %s", h)
	}
	return ok
}

func (s *schedule) shed(t time.Duration) bool {
	h, ok := s.steered()
	if ok {
		s.at(t, "shed %s", h)
		s.at(t+s.between(50, 800), "undrain %s", h)
	}
	return ok
}

// cut loses what is on a host's link, for less than it takes to be declared gone.
func (s *schedule) cut(t time.Duration) bool {
	h := s.pick(s.world.Hosts)
	if !s.take("link of " + h) {
		return false
	}
	here, _ := s.place(h)
	s.at(t, "cut %s %s", h, here)
	s.at(t+s.between(20, 600), "heal %s %s", h, here)
	return true
}

// trunk loses what is between two routers.
func (s *schedule) trunk(t time.Duration) bool {
	l := s.world.Trunks[s.rng.IntN(len(s.world.Trunks))]
	if !s.take("trunk " + l[0]) {
		return false
	}
	s.at(t, "cut %s %s", l[0], l[1])
	s.at(t+s.between(20, 400), "heal %s %s", l[0], l[1])
	return true
}

// weather makes a path slow and lossy, at most for this batch.
func (s *schedule) weather(t time.Duration) bool {
	l := s.world.Trunks[s.rng.IntN(len(s.world.Trunks))]
	if !s.take("weather " + l[0]) {
		return false
	}
	s.at(t, "link %s %s delay %dms loss %.1f%%", l[0], l[1], s.rng.IntN(41), s.rng.Float64()*3)
	s.at(t+s.between(500, 2000), "link %s %s delay 0ms loss 0%%", l[0], l[1])
	return true
}

// daemon ends one, by SIGKILL or, where flows outlive that, in good order, and starts it again.
func (s *schedule) daemon(node, name string, t time.Duration) bool {
	if !s.take("daemon " + node) {
		return false
	}
	how := "kill"
	if name != "hostd" && s.rng.IntN(3) == 0 { // a host daemon that leaves in good order takes its flows along
		how = "end"
	}
	s.at(t, "%s %s/%s", how, node, name)
	s.at(t+s.between(1, 600), "start %s/%s", node, name)
	return true
}

func (s *schedule) hostd(t time.Duration) bool { return s.daemon(s.pick(s.world.Hosts), "hostd", t) }
func (s *schedule) routerd(t time.Duration) bool {
	return s.daemon(s.pick(s.world.Routers), "routerd", t)
}
func (s *schedule) controld(t time.Duration) bool {
	return s.daemon(s.world.Controller, "controld", t)
}

func (s *schedule) weight(t time.Duration) bool {
	h, ok := s.steered()
	if ok {
		s.at(t, "weigh %s %d", h, s.rng.IntN(300))
		s.at(t+s.between(50, 800), "weigh %s 100", h)
	}
	return ok
}
