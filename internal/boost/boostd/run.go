package boostd

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/boost/agent"
	"scaffold.dev/scaffold/internal/boost/ends"
	"scaffold.dev/scaffold/internal/boost/joining"
	"scaffold.dev/scaffold/internal/boost/keeper"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/trust"
)

const (
	// beat is how often the kernel hears that the agent lives: it takes no new connections 200 ms after the last time.
	beat = 40 * time.Millisecond
	// silence is how long another agent may say nothing until it is taken for gone.
	silence = 2 * time.Second
)

// patience is how long sessions wait for another agent that is gone, before both their ends are reset. Tests have less.
var patience = 10 * time.Second

// run is an agent's worker until ctx ends, which keep ends as well.
func (s *Settings) run(ctx context.Context, keep *keeper.Store, log *slog.Logger) (err error) {
	doors, err := listenAll(s.Addresses(), keep)
	if err != nil {
		return fmt.Errorf("the port for other agents: %w", err)
	}
	defer closeAll(doors)
	key, err := s.key(log) // made only once the rest of the file has shown to fit this machine
	if err != nil {
		return err
	}
	own, err := newShown(key, keep)
	if err != nil {
		return err
	}
	carries, works := agent.Sessions(keep.Found()), false
	leaves := func() bool { return err != nil && !works && carries > 0 } // the program of before, or the next worker, goes on with them
	kernel, err := ends.Open(ends.Config{Ports: s.Ports, BPFFS: s.BPFFS, Carries: carries})
	if err != nil {
		return err
	}
	defer func() { // last: after it the kernel knows no session any more
		end := kernel.Close
		if leaves() {
			end = kernel.Leave
		}
		err = errors.Join(err, end())
	}()
	if err := s.mindForwarding(lane.Families(kernel.Stops()), carries > 0, log); err != nil {
		return err
	}
	others := &ring{all: s.Agents}
	s.choose(allowsBBR(), log)
	hosts := newKernelEnds(kernel, log)
	c := s.config(own, doors, hosts, others, log)
	c.Keep, c.Found = keep, keep.Found()
	c.Names = hostNames{hosts}
	rewritten := s.legs(hosts)
	c.Legs = rewritten
	if c.Incarnation, err = incarnation(time.Now(), keep); err != nil {
		return err
	}
	a, err := agent.Start(c)
	if err != nil {
		return err
	}
	defer func() {
		if leaves() {
			a.Leave()
		} else {
			a.Close()
		}
	}()
	if len(s.Controllers) == 0 { // else they say it, and what they have said last is kept
		if err := a.Tell(s.peers(), s.Lanes); err != nil {
			return err
		}
	}
	if err := kernel.Beat(); err != nil {
		return err
	}
	log.Info("agent", "name", s.Name, "door", s.Door, "paths", len(s.Paths), "lanes", len(s.Lanes), "agents", len(s.Agents), "controllers", len(s.Controllers), "control", s.Control, "connections", s.Connections)
	if len(s.Controllers) > 0 {
		ctx, cancel := context.WithCancel(ctx) // it ends as well where the kernel does not hear us any more
		var joined sync.WaitGroup
		at := newAnnouncer(*s, kernel, log)
		joined.Go(func() { at.run(ctx) })
		joined.Go(func() {
			joining.Run(ctx, s.joining(own, &told{a, others, newMeter(), kernel}, rewritten, at.use, keep, log))
		})
		defer func() { // before the agent ends, whom it tells what to do, and the kernel's sockets, by which it announces
			cancel()
			joined.Wait()
		}()
	}
	if err := keep.Ready(); err != nil {
		return err
	}
	works = true
	return live(ctx, kernel)
}

// mindForwarding looks at families of which the machine forwards nothing: what comes by way of it and is not boosted would end here. A
// controller that knows has no switch send such connections. An agent by itself begins with none, and goes on with those that it has.
func (s *Settings) mindForwarding(stops lane.Family, carries bool, log *slog.Logger) error {
	switch {
	case stops == 0:
	case len(s.Controllers) == 0 && !carries:
		return fmt.Errorf("connections that are not boosted would end here: %s", stops.Forwarding())
	default:
		log.Warn("this machine forwards nothing of a family: what comes by way of it and is not boosted ends here; a controller has no switch send that here", "family", stops, "next", stops.Forwarding())
	}
	return nil
}

// key is the agent's private key, which is made where there is none.
func (s *Settings) key(log *slog.Logger) (ed25519.PrivateKey, error) {
	if s.Key == "" {
		return trust.Directory(s.Credentials).Key()
	}
	key, made, err := Key(s.Key)
	if made && err == nil {
		log.Info("made a key", "path", s.Key, "public", Public(key))
	}
	return key, err
}

// live has the kernel hear that the agent lives until ctx ends.
func live(ctx context.Context, kernel *ends.Ends) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := kernel.Beat(); err != nil {
				return err
			}
		}
	}
}

func (s *Settings) peers() (list []agent.Peer) {
	for _, o := range s.Agents {
		list = append(list, o.Peer)
	}
	return list
}

func (s *Settings) config(own *shown, doors []net.Listener, e agent.Ends, others *ring, log *slog.Logger) agent.Config {
	return agent.Config{
		Name: s.Name, Protection: s.Protection, Strategy: s.Strategy, Shape: s.Shape,
		Control: s.Control, Connections: s.Connections.First, Most: s.Connections.Most, Open: s.Connections.Open, Memory: s.Memory << 20, Silence: silence, Patience: patience,
		Ends: e, Doors: doors, Addresses: append([]agent.Address{{At: s.Door}}, s.Paths...), Server: others.server(own),
		Client:   func(name string, failed int) *tls.Config { return others.client(own, name, failed) },
		Identity: func(c tls.ConnectionState) (string, error) { return nameOf(c, others.now()) },
		Dial:     dial,
		Report:   func(e agent.Event) { report(log, e) },
	}
}

// dial connects to another agent's door from an address of this one: by that the other one knows it, and the path.
func dial(ctx context.Context, from netip.Addr, to netip.AddrPort) (*net.TCPConn, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	d.SetMultipathTCP(false)
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

func report(log *slog.Logger, e agent.Event) {
	if e.Agent != "" {
		log = log.With("agent", e.Agent)
	}
	switch {
	case e.Turned != nil && e.Turned.Err == nil:
		log.Info("another agent goes on with a session of one that is lost", "client", e.Turned.Client, "server", e.Turned.Server, "to", e.Turned.To)
	case e.Turned != nil:
		log.Info("a session of an agent that is lost does not go on", "client", e.Turned.Client, "server", e.Turned.Server, "asked", e.Turned.To, "why", e.Turned.Err)
	case e.Path != nil && e.Path.Up:
		log.Info("a path to another agent is there", "path", e.Path.Pair)
	case e.Path != nil:
		log.Warn("a path to another agent is lost", "path", e.Path.Pair, "why", e.Path.Why)
	case e.Ended != nil && e.Ended.Cause == 0:
		log.Debug("a session has ended", ended(e.Ended)...)
	case e.Ended != nil:
		log.Info("a session was cut", append(ended(e.Ended), "why", e.Ended.Cause.String())...)
	default:
		log.Warn("boost", "why", e.Err)
	}
}

func ended(e *trunk.Ended) []any {
	return []any{"client", e.Client, "server", e.Server, "sent", e.Sent, "received", e.Received}
}
