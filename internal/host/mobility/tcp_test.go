package mobility

import (
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
)

// watch is whom the host's kernel tells.
func (h *fakeHost) watch() *watch {
	return &watch{flows: h.flows, moves: h.moves, places: h.where, meter: fakeMeter{}}
}

// A fakeTCP remembers what is asked of the kernel. It has the connections that look finds, none without it, and answers
// nothing that is not answered at once.
type fakeTCP struct {
	look   func(host.Tuple) (c *kick.Socket, sure bool)
	kicked map[host.Tuple]bool
}

func (k *fakeTCP) Look(of host.Tuple) (c *kick.Socket, sure bool) {
	if k.look == nil {
		return nil, false
	}
	return k.look(of)
}

func (k *fakeTCP) Kick(list []host.Tuple) {
	for _, t := range list {
		k.kicked[t] = true
	}
}

func (k *fakeTCP) Start()                              {}
func (k *fakeTCP) BindTo(string)                       {}
func (k *fakeTCP) Add(uint16, *kick.Kicker)            {}
func (k *fakeTCP) Remove(uint16)                       {}
func (k *fakeTCP) Busy(bool)                           {}
func (k *fakeTCP) Moving(bool)                         {}
func (k *fakeTCP) Read(host.Tuple, func(*kick.Socket)) {}
func (k *fakeTCP) Reset([]host.Tuple)                  {}
func (k *fakeTCP) ResetThen(host.Tuple, func())        {}
func (k *fakeTCP) End([]host.Tuple)                    {}
