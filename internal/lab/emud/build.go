package emud

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
)

// An engine is a network that is being built, or runs.
type engine struct {
	cfg      Config
	programs Programs
	net      *emu.Net
	began    time.Time // the zero of the network's clock
	routers  map[string]*router
	order    []*router // as in the configuration
	links    []*link
	ends     map[string][]*End // of links, by router and number of the port
	classes  *forward.Classes  // nil where every router looks its own table up

	counting    sync.Mutex         // of what follows
	since       time.Time          // when counting began, for certificates
	droppedThen map[emu.End]uint64 // frames that interfaces had lost then, or when the parameters of their links were set

	mu     sync.Mutex // of what follows, and of all that faults change
	routes routes
}

// A router with what the engine knows of it.
type router struct {
	*emu.Router
	cfg     *Router
	program string
	ports   []*end // by number
	failed  bool
	feed    *feed // nil where routes are ours
}

// A link with the reasons for which it is down.
type link struct {
	*emu.Link
	number int
	cfg    *Link
	ends   [2]*end
	causes []string
}

// An end is a port of a router, or an interface.
type end struct {
	link   *link
	side   int
	router *router // nil for an interface
	port   int
	failed bool // the port is
}

// newEngine builds everything; nothing moves yet.
func newEngine(cfg Config, programs Programs, log func(string, ...any)) (*engine, error) {
	e := &engine{
		cfg: cfg, programs: programs, routers: map[string]*router{}, ends: map[string][]*End{},
		droppedThen: map[emu.End]uint64{},
		net:         emu.New(emu.Options{Shards: cfg.Shards, Memory: cfg.Memory, Log: log}),
	}
	if err := e.build(); err != nil {
		return nil, errors.Join(err, e.close())
	}
	e.startClasses(log)
	return e, nil
}

func (e *engine) build() error {
	for i := range e.cfg.Links {
		for side := range e.cfg.Links[i].Ends {
			if end := &e.cfg.Links[i].Ends[side]; end.Router {
				e.ends[end.Node] = append(e.ends[end.Node], end)
			}
		}
	}
	for i := range e.cfg.Routers {
		if err := e.addRouter(&e.cfg.Routers[i]); err != nil {
			return err
		}
	}
	for i := range e.cfg.Links {
		if err := e.addLink(&e.cfg.Links[i]); err != nil {
			return err
		}
	}
	if err := e.startRoutes(); err != nil {
		return err
	}
	return e.startFeeds()
}

// close ends the network and what feeds it.
func (e *engine) close() error {
	var errs []error
	for _, r := range e.order {
		if r.feed != nil {
			errs = append(errs, r.feed.source.Close())
		}
	}
	return errors.Join(append(errs, e.net.Close())...)
}

func (e *engine) addRouter(cfg *Router) error {
	if e.routers[cfg.Name] != nil {
		return fmt.Errorf("router %s is there twice", cfg.Name)
	}
	program, err := e.program(cfg, cfg.Program, cfg.Parameters)
	if err != nil {
		return err
	}
	r := &router{Router: e.net.Router(cfg.Name, program), cfg: cfg, program: cfg.Program}
	if cfg.Core >= 0 {
		r.Pin(cfg.Core)
	}
	e.routers[cfg.Name] = r
	e.order = append(e.order, r)
	return nil
}

func (e *engine) addLink(cfg *Link) error {
	l := &link{cfg: cfg, number: len(e.links)}
	var nodes [2]emu.Node
	for i := range cfg.Ends {
		node, err := e.node(&cfg.Ends[i])
		if err != nil {
			return err
		}
		nodes[i] = node
	}
	made, err := e.net.Link(nodes[0], nodes[1], cfg.Params)
	if err != nil {
		return err
	}
	l.Link = made
	for i := range cfg.Ends {
		if err := e.tie(l, i); err != nil {
			return err
		}
	}
	e.links = append(e.links, l)
	return nil
}

// node is what a link ends at.
func (e *engine) node(end *End) (emu.Node, error) {
	switch {
	case end.Router && e.routers[end.Node] == nil:
		return nil, fmt.Errorf("a link ends at router %s, which is not there", end.Node)
	case end.Router:
		return e.routers[end.Node].Router, nil
	case end.Edge == nil:
		return nil, fmt.Errorf("a link ends at %s, which is no router and no interface", end.Node)
	}
	return e.net.Edge(*end.Edge)
}

// tie takes note of an end of a link, and gives a router's port its side in the router's own namespace.
func (e *engine) tie(l *link, side int) error {
	cfg, port := &l.cfg.Ends[side], l.Ports()[side]
	l.ends[side] = &end{link: l, side: side, port: port.Number}
	if !cfg.Router {
		return nil
	}
	r := e.routers[cfg.Node]
	l.ends[side].router = r
	r.ports = append(r.ports, l.ends[side])
	if cfg.Edge == nil {
		return nil
	}
	own, err := e.net.Edge(*cfg.Edge)
	if err != nil {
		return err
	}
	port.SetLocal(own)
	return nil
}

// name is what people call an end.
func (l *link) name(side int) string { return l.cfg.Ends[side].Node }
