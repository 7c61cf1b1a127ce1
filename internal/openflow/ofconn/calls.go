package ofconn

import (
	"errors"
	"fmt"
	"sync"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// calls are what waits for the switch, by transaction id.
type calls struct {
	mu   sync.Mutex
	open map[uint32]*call
	last uint32
	done error // why no more are taken
}

// A call waits for an answer, or for several: the messages that it sent, and the parts of a multipart.
type call struct {
	ids   []uint32
	ends  uint32 // the id whose answer ends it
	parts []ofp.Body
	size  int
	errs  []error
	done  chan struct{}
}

// begin takes n ids, of which the last one's answer ends the call. What is refused of the messages of
// before, which are answered already, belongs to it as well.
func (c *calls) begin(n int, before []uint32) (*call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil {
		return nil, c.done
	}
	w := &call{done: make(chan struct{})}
	for range n {
		w.ids = append(w.ids, c.id())
		c.open[w.ids[len(w.ids)-1]] = w
	}
	w.ends = w.ids[n-1]
	for _, id := range before {
		if c.open[id] == nil {
			c.open[id] = w
			w.ids = append(w.ids, id)
		}
	}
	return w, nil
}

// next is an id for what waits for no answer.
func (c *calls) next() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id()
}

// id passes over those that are waited for, and over 0, which messages have that answer nothing.
func (c *calls) id() uint32 {
	for {
		c.last++
		if c.last != 0 && c.open[c.last] == nil {
			return c.last
		}
	}
}

// answer gives a message of n bytes to who waits for it, and reports whether somebody does.
func (c *calls) answer(m ofp.Message, n, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.open[m.XID]
	if w == nil {
		return false
	}
	if refusal, ok := m.Body.(ofp.Error); ok {
		w.errs = append(w.errs, refusal)
		if m.XID == w.ends {
			c.close(w)
		}
		return true
	}
	if m.XID != w.ends { // of a message before: no refusal, no news
		return true
	}
	w.parts = append(w.parts, m.Body)
	w.size += n
	reply, _ := m.Body.(ofp.MultipartReply)
	if w.size > limit {
		w.errs = append(w.errs, fmt.Errorf("the switch's answer has more than %d bytes: %w", limit, ErrDamaged))
	}
	if !reply.More || w.size > limit {
		c.close(w)
	}
	return true
}

// close ends a call; mu is held.
func (c *calls) close(w *call) {
	for _, id := range w.ids {
		delete(c.open, id)
	}
	close(w.done)
}

// fail ends the call that waits for that id.
func (c *calls) fail(id uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.open[id]; w != nil {
		w.errs = append(w.errs, err)
		c.close(w)
	}
}

func (c *calls) failAll(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = err
	for _, w := range c.open {
		if c.open[w.ends] == w {
			w.errs = append(w.errs, err)
			c.close(w)
		}
	}
}

// err is valid after done.
func (w *call) err() error { return errors.Join(w.errs...) }
