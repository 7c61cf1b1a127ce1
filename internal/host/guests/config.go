package guests

import (
	"log/slog"
	"net"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/sid"
)

// A Config is what guests need of others. All but Name and Answer are asked in the loop.
type Config struct {
	Log      *slog.Logger
	Name     string // of the host
	Identity uint64 // low half of its own address
	BootID   string
	Netns    uint64 // inode of its namespace
	Files    Files
	Hooks    *sockets.Hooks
	Post     func(func())
	Later    func(func())          // after what the loop does now
	WaitFor  func(<-chan struct{}) // for a goroutine that posts
	Answer   func(net.PacketConn, net.Listener) (end func())
	Host     Host
	Flows    Flows
	Registry Registry
}

// Files keep what a restarted daemon needs to know.
type Files interface {
	Read(name string, v any) bool
	WriteJSON(name string, v any) error
}

// A Host is what guests are reached by.
type Host interface {
	Edge() *host.Edge                  // nil before there is one
	Space() (space sid.Space, in bool) // of the network that the host is in
	Uplink() (index int, ok bool)      // by which new flows leave
	MTU() int                          // that every uplink takes: a flow may move to any
}

// Flows are the host's and its guests'.
type Flows interface {
	Host(guest uint16, k *kick.Kicker) // whose kernel's TCP moves are told to
	Unhost(guest uint16)
	Evict(gone func(guest uint16) bool)
	Watch(guest uint16, diag *sockets.Diag) // whose datagram sockets hold flows
	Unwatch(guest uint16)
}

// A Registry is what the host and its guests serve.
type Registry interface {
	Await(guest uint16)
	Watch(guest uint16, socks *sockets.Host, done chan struct{})
	Forget(guest uint16)
	Flush()
	Of(guest uint16) []sid.Triple
	Name(id sid.ServiceID) string
}
