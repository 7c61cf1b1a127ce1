package ofconn

import (
	"sync"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// An outbox is what waits to be written. Whoever writes takes all of it at once, so that a thousand
// messages are a few writes.
type outbox struct {
	mu     sync.Mutex
	change *sync.Cond
	buf    []byte
	limit  int
	closed error
}

func newOutbox(limit int) *outbox {
	o := &outbox{limit: limit}
	o.change = sync.NewCond(&o.mu)
	return o
}

// add puts messages in, one behind the other with nothing between; it waits for room.
func (o *outbox) add(messages ...ofp.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.closed == nil && len(o.buf) >= o.limit {
		o.change.Wait()
	}
	return o.append(messages)
}

// try is add for what is not worth waiting for: it reports whether there was room.
func (o *outbox) try(m ofp.Message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.buf) < o.limit && o.append([]ofp.Message{m}) == nil
}

// append puts in all or nothing; mu is held.
func (o *outbox) append(messages []ofp.Message) error {
	if o.closed != nil {
		return o.closed
	}
	buf := o.buf
	for _, m := range messages {
		var err error
		if buf, err = m.Append(buf); err != nil {
			return err
		}
	}
	o.buf = buf
	o.change.Broadcast()
	return nil
}

// take waits for something to write; spare is a buffer that is not used any more.
func (o *outbox) take(spare []byte) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.closed == nil && len(o.buf) == 0 {
		o.change.Wait()
	}
	if o.closed != nil {
		return nil, o.closed
	}
	full := o.buf
	o.buf = spare[:0]
	o.change.Broadcast()
	return full, nil
}

func (o *outbox) close(cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed == nil {
		o.closed = cause
	}
	o.change.Broadcast()
}
