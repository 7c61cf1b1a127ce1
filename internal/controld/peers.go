package controld

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/store"
)

// peers are the controllers that run, as the store shows them: the one that leads first.
type peers struct {
	mu      sync.Mutex
	running []store.Candidate
	trouble error
	changed chan struct{} // closed on the next change
}

func newPeers() *peers {
	return &peers{trouble: errors.New("not known yet"), changed: make(chan struct{})}
}

// set is told by the store.
func (p *peers) set(list []store.Candidate, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = err
	if err == nil {
		p.running = list
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// now is who runs, and a channel that is closed when that is no longer so.
func (p *peers) now() (running []store.Candidate, trouble error, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running, p.trouble, p.changed
}

// leader is nil where nobody leads, or nobody can say.
func (p *peers) leader() *store.Candidate {
	running, trouble, _ := p.now()
	if trouble != nil || len(running) == 0 {
		return nil
	}
	return &running[0]
}

// follow tells the network of each change.
func (p *peers) follow(ctx context.Context, n *network) {
	for {
		running, trouble, changed := p.now()
		if trouble == nil {
			n.loop.post(func() { n.controllersRun(running) })
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// endpoints are those of all controllers, this one's first.
func (n *network) endpoints() (list []string) {
	list = append(list, n.controllers[n.cfg.Name].API...)
	for _, name := range n.controllerNames() {
		if name != n.cfg.Name {
			list = append(list, n.controllers[name].API...)
		}
	}
	return list
}

func (n *network) controllerNames() []string {
	names := make([]string, 0, len(n.controllers))
	for name := range n.controllers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// all is what daemons are told of the controllers; nil where there can be one only.
func (n *network) all() *apiv1.Controllers {
	if len(n.controllers) == 0 {
		return nil
	}
	return &apiv1.Controllers{Endpoints: n.endpoints()}
}

// controllersRun takes who runs: new ones are kept and daemons told of them, and what came or went is an event.
func (n *network) controllersRun(running []store.Candidate) {
	before := n.endpoints()
	now := make(map[string]store.Candidate, len(running))
	for _, c := range running {
		now[c.Name] = c
		if have, known := n.controllers[c.Name]; !known || !slices.Equal(have.API, c.API) {
			n.controllers[c.Name] = store.Controller{Name: c.Name, API: c.API}
			n.saver.later(store.PutController(n.controllers[c.Name]))
		}
		if _, was := n.running[c.Name]; !was && n.running != nil {
			n.event("controller.back", c.Name, "controller runs and stands by", "version", c.Version)
		}
	}
	for name := range n.running {
		if _, is := now[name]; !is {
			n.event("controller.gone", name, "controller does not run any more")
		}
	}
	n.running = now
	if !slices.Equal(before, n.endpoints()) {
		n.tellControllers()
	}
}

// tellControllers lets all daemons know where controllers are.
func (n *network) tellControllers() {
	all := n.all()
	for _, h := range n.hosts {
		if h.session != nil {
			h.session.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Controllers{Controllers: all}})
		}
	}
	for _, r := range n.routers {
		if r.session != nil {
			r.session.send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Controllers{Controllers: all}})
		}
	}
}

// list is the controllers as operators see them: those that run, those that are members of the state's cluster, and
// those that only the store remembers.
func (c *seat) list(members []store.Peer, known map[string]store.Controller) []*apiv1.Controller {
	running, _, _ := c.peers.now()
	byName := map[string]*apiv1.Controller{}
	of := func(name string) *apiv1.Controller {
		if byName[name] == nil {
			byName[name] = &apiv1.Controller{Name: name, State: "gone"}
		}
		return byName[name]
	}
	for name, k := range known {
		of(name).Endpoints = k.API
	}
	for _, m := range members {
		x := of(cmp.Or(m.Name, m.URL))
		x.Member = m.URL
		if m.New {
			x.State = "joins"
		}
	}
	for i, r := range running {
		x := of(r.Name)
		x.Endpoints, x.Version, x.SinceUnixMs, x.State = r.API, r.Version, r.Since, "stands by"
		if i == 0 {
			x.State = "leads"
		}
	}
	list := make([]*apiv1.Controller, 0, len(byName))
	for _, x := range byName {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *apiv1.Controller) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// noLeader says why nothing can be ordered now.
func (c *seat) noLeader() error {
	_, trouble, _ := c.peers.now()
	if trouble != nil {
		return fmt.Errorf("no controller leads: controller %s does not reach enough of the others' state: %w", c.cfg.Name, trouble)
	}
	return fmt.Errorf("no controller leads at the moment: controller %s stands by", c.cfg.Name)
}
