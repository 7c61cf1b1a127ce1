package tunnels

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"scaffold.dev/scaffold/internal/host/underlay"
)

// processName is the WireGuard process of the host in its namespace.
const processName = "hostd"

// A wireGuard is what all tunnels of the host that are WireGuard have in common: the process that keeps them. It is
// safe for concurrent use.
type wireGuard struct {
	argv []string // of the process

	mu      sync.Mutex
	process *underlay.Process // nil until a tunnel needs it
	by      string            // the engine
	key     []byte            // private
	peers   []underlay.Peer
}

// open takes over the process of an earlier daemon, with those of its tunnels that are still asked for.
func (g *wireGuard) open(asked map[string][]underlay.Kind) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key = underlay.NewKey()
	p := underlay.FindProcess(processName)
	if p == nil {
		return nil
	}
	s, err := p.State()
	if err != nil || s.Setup.Key == nil || len(asked) == 0 {
		return p.End()
	}
	g.process, g.key, g.by = p, s.Setup.Key, s.Engine
	g.peers = slices.DeleteFunc(s.Setup.Peers, func(p underlay.Peer) bool { return asked[p.Name] == nil })
	return g.tell()
}

// set keeps a tunnel, in the stead of the one with its interface.
func (g *wireGuard) set(peer underlay.Peer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.start(); err != nil {
		return err
	}
	g.peers = slices.DeleteFunc(g.peers, func(p underlay.Peer) bool { return p.Name == peer.Name || bytes.Equal(p.Key, peer.Key) })
	g.peers = append(g.peers, peer)
	return g.tell()
}

// start starts the process, also one that was killed.
func (g *wireGuard) start() error {
	if g.process != nil {
		if _, err := g.process.State(); err == nil {
			return nil
		}
	}
	argv := g.argv
	if len(argv) == 0 {
		argv = []string{"/proc/self/exe", "wireguard"}
	}
	p, err := underlay.StartProcess(processName, argv)
	if err != nil {
		return err
	}
	g.process = p
	return nil
}

// drop ends a tunnel, if it is one of these.
func (g *wireGuard) drop(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := len(g.peers)
	g.peers = slices.DeleteFunc(g.peers, func(p underlay.Peer) bool { return p.Name == name })
	if g.process == nil || len(g.peers) == all {
		return nil
	}
	return g.tell()
}

func (g *wireGuard) tell() error {
	if err := g.process.Set(underlay.Setup{Key: g.key, Peers: g.peers}); err != nil {
		return err
	}
	s, err := g.process.State()
	g.by = s.Engine
	return err
}

// public is the key by which routers know this host's tunnels.
func (g *wireGuard) public() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, err := underlay.PublicKey(g.key)
	if err != nil {
		panic(fmt.Sprintf("tunnels: a key of our own: %v", err))
	}
	return key
}

// engine says by what a kind of tunnel is carried.
func (g *wireGuard) engine(k underlay.Kind) string {
	if k != underlay.WireGuard {
		return "kernel"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.by
}

// end ends the process and with it the tunnels.
func (g *wireGuard) end() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.process == nil {
		return nil
	}
	return g.process.End()
}
