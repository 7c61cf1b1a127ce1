package api

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Controllers are where the controllers of a network are. One of them leads, and a daemon goes from one to the next
// until it has found it. Methods may be called from any goroutine.
type Controllers struct {
	mu     sync.Mutex
	own    []string // of the configuration
	told   []string // by the network
	at     int      // in all: the one to be tried next
	hint   string   // who is said to lead, until it was tried
	tried  map[string]bool
	joined string        // where the last session was
	moved  chan struct{} // closed when that is somewhere else
}

// NewControllers begins with those of the configuration.
func NewControllers(endpoints []string) *Controllers {
	return &Controllers{own: endpoints, tried: map[string]bool{}, moved: make(chan struct{})}
}

// all are those of the configuration, then those of the network that it does not name.
func (c *Controllers) all() []string {
	list := slices.Clone(c.own)
	for _, e := range c.told {
		if !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

// All are the endpoints that are known.
func (c *Controllers) All() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all()
}

// Several reports whether there is more than one to go to.
func (c *Controllers) Several() bool { return len(c.All()) > 1 }

// Next is the endpoint to try. tired says that all were tried since the last time that it was so: to wait is due.
func (c *Controllers) Next() (endpoint string, tired bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	endpoint = c.choose()
	if endpoint == "" {
		clear(c.tried)
		endpoint, tired = c.choose(), true
	}
	c.tried[endpoint] = true
	return endpoint, tired
}

func (c *Controllers) choose() string {
	if h := c.hint; h != "" {
		c.hint = ""
		if !c.tried[h] {
			return h
		}
	}
	list := c.all()
	for i := range list {
		if e := list[(c.at+i)%len(list)]; !c.tried[e] {
			return e
		}
	}
	return ""
}

// Best is where the one that leads is thought to be: the last that led, or the first. moved is closed when a session
// has begun somewhere else.
func (c *Controllers) Best() (endpoint string, moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.best(), c.moved
}

func (c *Controllers) best() string {
	if list := c.all(); c.joined == "" && len(list) > 0 {
		return list[c.at%len(list)]
	}
	return c.joined
}

// Joined notes that the one at the endpoint leads.
func (c *Controllers) Joined(endpoint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.best() != endpoint { // who went there on a guess stays
		close(c.moved)
		c.moved = make(chan struct{})
	}
	c.joined, c.hint = endpoint, ""
	clear(c.tried)
	if i := slices.Index(c.all(), endpoint); i >= 0 {
		c.at = i
	}
}

// Lost notes that a session with the one at the endpoint is over: the others are tried first.
func (c *Controllers) Lost(endpoint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.all(), endpoint); i >= 0 {
		c.at = i + 1
	}
}

// Refer notes what one says that does not lead: who does, and who there is.
func (c *Controllers) Refer(leader, all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(leader) > 0 {
		c.hint = leader[0]
	}
	if len(all) > 0 {
		c.told = all
	}
}

// Tell notes which controllers the network has.
func (c *Controllers) Tell(all []string) { c.Refer(nil, all) }

// How long a controller is believed that says nothing, where there are others, or other ways to it: a machine that is gone
// sends no FIN.
const (
	impatientPing    = 2 * time.Second
	impatientTimeout = 3 * time.Second
)

// Impatient makes a client of DialWith notice sooner that its peer has vanished.
func Impatient(client *http.Client) *http.Client {
	pings := &http.HTTP2Config{SendPingTimeout: impatientPing, PingTimeout: impatientTimeout}
	switch t := client.Transport.(type) {
	case *http.Transport:
		t.HTTP2 = pings
	case secured:
		t.HTTP2 = pings
	}
	return client
}
