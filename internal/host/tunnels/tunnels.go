package tunnels

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/host/underlay"
)

// A Config is what tunnels are given, and whom they tell.
type Config struct {
	Log         *slog.Logger
	Host        string   // its name
	WireGuard   []string // program that keeps WireGuard; nil: this one
	BootID      string
	Netns       uint64
	Files       Files
	Controllers *api.Controllers // who is asked for tunnels; nil where none are
	TLS         func() (*tls.Config, error)
	Key         func() ed25519.PrivateKey // of the host, now
	Post        func(func())              // hands work to the loop
	Changed     func()                    // a tunnel is ready, or is not any more; called in the loop
	Resized     func()                    // one carries less than before; likewise
}

// Files are where a daemon leaves to the next one what its tunnels are.
type Files interface {
	Read(name string, v any) bool
	WriteJSON(name string, v any) error
	Remove(name string)
}

// Tunnels are those of a host.
type Tunnels struct {
	cfg       Config
	wireGuard wireGuard
	lead      lead // whether a cable leads to the network

	list    map[string]*Tunnel // by interface; constant after Open
	running sync.WaitGroup
	end     context.CancelFunc // nil before they are kept
}

// Open takes over the tunnels of an earlier daemon that are asked for, by interface. Others are removed. last: they are for
// while no cable leads to a router.
func Open(cfg Config, asked map[string][]underlay.Kind, last bool) (*Tunnels, error) {
	n := &Tunnels{cfg: cfg, wireGuard: wireGuard{argv: cfg.WireGuard}, list: map[string]*Tunnel{}}
	if err := n.wireGuard.open(asked); err != nil {
		return n, err
	}
	ports, err := underlay.Ports()
	if err != nil {
		return n, err
	}
	for _, p := range ports {
		if asked[p.Name] == nil {
			if err := underlay.Remove(p.Name); err != nil {
				return n, err
			}
		}
	}
	for name, kinds := range asked {
		t := &Tunnel{all: n, name: name, kinds: kinds, last: last}
		t.adopt(ports)
		n.list[name] = t
	}
	return n, nil
}

// At is the tunnel that makes an interface, nil where none does.
func (n *Tunnels) At(name string) *Tunnel {
	if n == nil {
		return nil
	}
	return n.list[name]
}

// Keep begins to look after them, until ctx or End ends it.
func (n *Tunnels) Keep(ctx context.Context) {
	ctx, n.end = context.WithCancel(ctx)
	for _, t := range n.list {
		n.running.Go(func() { t.run(ctx) })
	}
}

// Cabled says whether a cable leads to the network.
func (n *Tunnels) Cabled(yes bool) { n.lead.set(yes) }

// End ends what looks after them. It posts until done is closed.
func (n *Tunnels) End() (done <-chan struct{}) {
	if n.end != nil {
		n.end()
	}
	all := make(chan struct{})
	go func() { n.running.Wait(); close(all) }()
	return all
}

// Remove removes them. Without it they are the next daemon's.
func (n *Tunnels) Remove() error {
	errs := []error{n.wireGuard.end()}
	for _, t := range n.list {
		errs = append(errs, underlay.Remove(t.name))
		n.cfg.Files.Remove(t.file())
	}
	return errors.Join(errs...)
}

// routers are those that the others lead to.
func (n *Tunnels) routers(but *Tunnel) map[string]bool {
	used := map[string]bool{}
	for _, t := range n.list {
		if t != but {
			if ready, has, _ := t.State(); ready {
				used[has.Router] = true
			}
		}
	}
	return used
}
