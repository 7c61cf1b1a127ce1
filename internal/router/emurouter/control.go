package emurouter

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/openflow/userstack"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
)

// helloEvery is between HELLOs on a port, docs/protocol.md §4; counters are reported as often.
const helloEvery = time.Second

// A control is the router's loop outside the engine. Fields are the loop's own unless they say otherwise.
type control struct {
	cfg    *Config
	path   *path // touched inside emu.Router.Do alone
	router *emu.Router
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	inbox  chan func() // what other goroutines want done
	out    chan outgoing

	stack      *userstack.Stack
	relay      *agent.Relay
	relayPort  uint16
	keys       *agent.LinkKeys
	settled    bool // it is known at which ports routers are: nobody is shut out before
	filter     bool // by sources, as the last snapshot said
	neighbours *agent.Neighbours
	told       *apiv1.Neighbours // reported last in this session
	up         map[string]bool   // ports

	session    *agent.Session // nil while there is none
	locator    sid.Locator
	generation uint64
	naming     plan.Naming
	refused    []error // of the snapshot under way: what of it was not applied
	routes     map[route]int
	hosts      *agent.Hosts

	controllers *api.Controllers // for every goroutine
}

func newControl(x *Router, r *emu.Router) *control {
	keys := agent.NewLinkKeys()
	c := &control{cfg: &x.cfg, path: x.path, router: r, log: x.cfg.Log.With("router", x.cfg.Name), inbox: make(chan func(), 256),
		out: make(chan outgoing, outMost), keys: keys, neighbours: agent.NewNeighbours(x.cfg.Name, keys), up: map[string]bool{}, routes: map[route]int{},
		hosts: agent.NewHosts(), controllers: api.NewControllers(strings.Split(x.cfg.Controller, ","))}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// run is the loop. It ends with the network, or when the router has another program.
func (c *control) run() {
	defer c.cancel()
	if err := c.open(); err != nil {
		c.log.Error("the router's own stack: no host can join here", "error", err)
		return
	}
	defer c.close()
	stream := &agent.Router{Controllers: c.controllers, Credentials: &member.Credentials{Directory: trust.Directory(c.cfg.Credentials)}, Dial: c.cfg.dial, Log: c.log, Call: c.call, Join: c.join, Joined: c.joined,
		Rules: c.apply, Order: c.order, Parted: c.parted, Health: func(error) {}}
	go stream.Converse(c.ctx)
	tick := time.NewTicker(helloEvery)
	defer tick.Stop()
	for c.ctx.Err() == nil {
		select {
		case f := <-c.inbox:
			f()
		case <-c.path.mail.filled:
			c.read()
		case <-tick.C:
			c.tick()
		case <-c.ctx.Done():
		}
	}
}

// do changes the path.
func (c *control) do(f func()) {
	ours := false
	err := c.router.Do(func() {
		x, is := c.router.Program().(*Router)
		if ours = is && x.path == c.path; ours {
			f()
		}
	})
	if err != nil || !ours {
		c.cancel()
	}
}

// read takes what the path found.
func (c *control) read() {
	for _, e := range c.path.mail.take() {
		switch {
		case e.frame != nil:
			c.stack.Deliver(c.cfg.Ports[e.port].Name, e.frame)
		case e.carrier:
			c.carrier(c.cfg.Ports[e.port].Name, e.up)
		default:
			c.hostChanges(e.hosts)
		}
	}
}

func (c *control) tick() {
	for port, up := range c.up {
		if up {
			c.greet(port)
		}
	}
	fell := c.neighbours.Tick()
	c.proveAll()
	if fell {
		c.tellNeighbours()
	}
	c.tellCounters()
}

// call runs f in the loop and waits for it; false after the end.
func (c *control) call(f func()) bool {
	done := make(chan struct{})
	select {
	case c.inbox <- func() { f(); close(done) }:
	case <-c.ctx.Done():
		return false
	}
	select {
	case <-done:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// tellCounters reports what became of packets that were decided about.
func (c *control) tellCounters() {
	now := &apiv1.RouterCounters{}
	c.do(func() {
		now.Counters = c.path.counts()
		services, instances := c.path.answers.Sizes()
		now.Services, now.Instances = uint32(services), uint32(instances)
	})
	if c.session != nil {
		c.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Counters{Counters: now}})
	}
}

var errCommit = errors.New("a commit without a snapshot")
