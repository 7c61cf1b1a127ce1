package controllers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/store"
)

// Peers are the controllers that run, as the store shows them: the one that leads first. Each controller has them, also
// one that stands by; they are for every goroutine.
type Peers struct {
	mu      sync.Mutex
	running []store.Candidate
	trouble error
	led     time.Time     // when a leader was last known; at first, when this began to ask
	changed chan struct{} // closed on the next change
}

// NewPeers are those of one who has not heard of the store yet.
func NewPeers() *Peers {
	return &Peers{trouble: errors.New("not known yet"), led: time.Now(), changed: make(chan struct{})}
}

// Set is told by the store.
func (p *Peers) Set(list []store.Candidate, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trouble == nil && len(p.running) > 0 {
		p.led = time.Now()
	}
	p.trouble = err
	if err == nil {
		p.running = list
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// Now is who runs, and a channel that is closed when that is no longer so.
func (p *Peers) Now() (running []store.Candidate, trouble error, changed <-chan struct{}) { //nolint:staticcheck // trouble is what is known, no failure of now
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running, p.trouble, p.changed
}

// Leader is nil where nobody leads, or nobody can say.
func (p *Peers) Leader() *store.Candidate {
	running, trouble, _ := p.Now()
	if trouble != nil || len(running) == 0 {
		return nil
	}
	return &running[0]
}

// Leaderless is since when nobody is known to lead, where that is so.
func (p *Peers) Leaderless() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.led
}

// Follow tells of each change, and of how it is at first, until ctx ends.
func (p *Peers) Follow(ctx context.Context, tell func(running []store.Candidate)) {
	for {
		running, trouble, changed := p.Now()
		if trouble == nil {
			tell(running)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// List is the controllers as operators see them: those that run, those that are members of the state's cluster, and
// those that only the store remembers.
func (p *Peers) List(members []store.Peer, known map[string]store.Controller) []*apiv1.Controller {
	running, _, _ := p.Now()
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
