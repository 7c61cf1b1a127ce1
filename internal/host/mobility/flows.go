package mobility

import (
	"log/slog"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/host/history"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// flows are those of the host: at the edge, in the kernel, and, of those to which something happens, in the engine. What
// all parts of this package share is here, and nothing else.
type flows struct {
	log    *slog.Logger
	post   func(func())
	edge   dataPath // nil until there is one, as the engine is
	engine *session.Engine
	keys   *session.Keys // nil in an open network
	kernel kernelTCP

	held     map[session.Key]held
	byTuple  map[host.Tuple]session.Key
	resumes  resumes
	policies policies
	history  history.Flows
	dying    []*quietFlow
	quiet    map[host.Tuple]*quietFlow // the last of dying
	compared time.Time                 // with the edge; zero while that runs
	counters map[string]uint64
}

func (s *flows) renew(now time.Time) {
	s.held, s.byTuple = map[session.Key]held{}, map[host.Tuple]session.Key{}
	s.resumes, s.history = resumes{}, history.New()
	s.dying, s.quiet = nil, map[host.Tuple]*quietFlow{}
	s.compared = now
}

// A held flow is the one of the edge that a flow of the engine is. A client's kernel gives the port of a connection
// that has ended to the next one; a server's tuple, which names the stable identifier, never comes back.
type held struct {
	tuple host.Tuple
	birth sid.SocketID // of a client's; 0: of a server's
}

// A dataPath is the edge as sessions use it; tests have another one.
type dataPath interface {
	Walk(f func(host.Flow) bool) error
	Flow(id sid.SocketID) (host.Flow, bool, error)
	Lookup(t host.Tuple) (host.Flow, bool, error)
	Answered(t host.Tuple) (host.Flow, bool, error)
	Steer(steps []host.Step) (failed []int, err error)
	Send(from, to netip.Addr, retry uint8, payload []byte) error
	PutSessions(all map[host.SessionKey][]byte) error
	DeleteSession(key host.SessionKey) error
	AllSessions(f func(key host.SessionKey, blob []byte) bool) error
	Space() sid.Space
	Adopt(a host.Adoption) error
	Nudge(flow host.Tuple, t wire.Transport, window uint16) error
	Heard(flow host.Tuple) (uint64, error)
	Unread() bool
	Untold() (uint64, error)
	Quiet(l sid.Locator, yes bool) error
	Offered(client host.Addr, id sid.SocketID) sid.SocketID
	ProbeNonce() uint64
	ProbeNonceOf(n uint32) uint64
}

// A kernelTCP is that of the host and its guests as sessions use it; tests have another one.
type kernelTCP interface {
	Start()
	BindTo(device string)
	Add(guest uint16, k *kick.Kicker)
	Remove(guest uint16)
	Busy(yes bool)
	Moving(yes bool)
	Look(of host.Tuple) (c *kick.Socket, sure bool)
	Read(of host.Tuple, then func(*kick.Socket))
	Kick(list []host.Tuple)
	Reset(list []host.Tuple)
	ResetThen(which host.Tuple, then func())
	End(list []host.Tuple)
}
