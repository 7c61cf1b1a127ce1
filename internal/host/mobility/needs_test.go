package mobility

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"scaffold.dev/scaffold/sid"
)

// fakePlaces is one place, and whether its link is down.
type fakePlaces struct {
	at   sid.Locator
	down bool
}

func (p *fakePlaces) Preferred() (sid.Locator, bool) { return p.at, !p.down }
func (p *fakePlaces) StandsAt(l sid.Locator) bool    { return p.at == l && !p.down }
func (p *fakePlaces) Has(l sid.Locator) bool         { return p.at == l }

// A fakeServing is what a host serves, and whether it may. All may connect to it.
type fakeServing struct {
	all     map[sid.Triple]bool
	changes int
}

func (s *fakeServing) Each(f func(t sid.Triple, may bool)) {
	for t, may := range s.all {
		f(t, may)
	}
}

func (s *fakeServing) Name(id sid.ServiceID) string                              { return id.String() }
func (s *fakeServing) Forbids(sid.ServiceID, sid.Locator) bool                   { return false }
func (s *fakeServing) Changes() int                                              { return s.changes }
func (s *fakeServing) Flush()                                                    {}
func (s *fakeServing) Retell()                                                   {}
func (s *fakeServing) Connected(uint16, uint64) (map[netip.AddrPort]bool, error) { return nil, nil }

// A fakeController knows whether others serve. Questions come from several goroutines.
type fakeController struct {
	there bool
	err   error

	mu       sync.Mutex
	asked    []Question
	policies int // how often it was asked for one
}

var errAway = errors.New("away")

func (c *fakeController) Others(_ context.Context, q Question) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, q)
	return c.there, c.err
}

func (c *fakeController) AskPolicy(context.Context, netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policies++
}

func (c *fakeController) Report(string, string, map[string]string) {}

type fakeMeter struct{}

func (fakeMeter) Count(string, int)   {}
func (fakeMeter) Moved(time.Duration) {}
