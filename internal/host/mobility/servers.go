package mobility

import (
	"slices"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// servers are the programs that have said that they serve.
type servers struct {
	*flows
	serving Serving

	all     []*server
	capable map[sid.ServiceID]bool
	barren  error // why this kernel adopts no connection
	seen    int   // changes of what this host serves
}

// A server is a program that has said that it serves.
type server struct {
	match     func(sid.Triple) bool
	canResume bool
	notices   chan string
}

// Serve notes that a program serves what match tells, and whether it can go on with flows that began elsewhere; until end
// is called, in the loop. It hears of drains by notices.
func (s *servers) Serve(match func(sid.Triple) bool, canResume bool) (notices <-chan string, end func()) {
	x := &server{match: match, canResume: canResume, notices: make(chan string, 16)}
	s.all = append(s.all, x)
	s.servingChanged()
	return x.notices, func() { s.unserve(x) }
}

func (s *servers) unserve(x *server) {
	s.all = slices.DeleteFunc(s.all, func(o *server) bool { return o == x })
	s.servingChanged()
}

// servingChanged tells the engine and the controller what can resume.
func (s *servers) servingChanged() {
	s.recheckCapable()
	s.serving.Retell()
}

// CanResume reports whether a program of this host can go on with the flows of an instance.
func (s *servers) CanResume(t sid.Triple) bool {
	return s.keys != nil && (s.barren == nil || t.Proto != sid.TCP) && slices.ContainsFunc(s.all, func(x *server) bool { return x.canResume && x.match(t) })
}

// recheckCapable tells the engine which services' flows may come here: as with first packets, none before it is known
// who may connect, and none of a service that this host may not serve.
func (s *servers) recheckCapable() {
	if s.engine == nil {
		return
	}
	now := map[sid.ServiceID]bool{}
	s.serving.Each(func(t sid.Triple, may bool) {
		if may && s.CanResume(t) {
			now[t.Service] = true
		}
	})
	for id := range s.capable {
		if !now[id] {
			s.engine.SetCapable(id, false)
		}
	}
	for id := range now {
		s.engine.SetCapable(id, true)
	}
	s.capable = now
}

// noticeDrain tells the programs that serve.
func (s *servers) noticeDrain(id sid.ServiceID, mode string) {
	kind := "draining"
	if mode == "" {
		kind = "undrained"
	}
	s.serving.Each(func(t sid.Triple, _ bool) {
		for _, x := range s.all {
			if t.Service == id && x.match(t) {
				select {
				case x.notices <- kind:
				default: // it does not read
				}
			}
		}
	})
}

// Drain tells the programs that serve how, and sheds the flows of one that sheds.
func (s *servers) Drain(id sid.ServiceID, how string) (shed int) {
	s.noticeDrain(id, how)
	if how == "shed" {
		s.serving.Flush() // nothing new comes any more when the first client turns away
		shed = s.Shed(wire.Draining, func(f host.Flow) bool { return f.Service == id })
	}
	return shed
}
