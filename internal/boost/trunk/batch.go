package trunk

import (
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/link"
	"scaffold.dev/scaffold/internal/core/stripe"
)

const (
	// smallAtOnce is how many bytes of STATE and of what opens and ends sessions go before the next chunk.
	smallAtOnce = 16 << 10
	// chunksAtOnce is how many bytes of chunks leave with one call, beyond the first chunk: more would be decided too
	// early, fewer cost calls where chunks are small.
	chunksAtOnce = 64 << 10
)

// A batch is frames that leave on a connection together.
type batch struct {
	small  []byte // frames one after the other
	ends   []int  // where each of them ends in small
	chunks []stripe.Frame
	bytes  [][]byte // of each chunk
}

func (b *batch) empty() bool { return len(b.ends) == 0 && len(b.chunks) == 0 }

func (b *batch) clear() {
	b.small, b.ends, b.chunks, b.bytes = b.small[:0], b.ends[:0], b.chunks[:0], b.bytes[:0]
}

// collect fills a batch with what is to go out on the connection now. False: nothing more does, for it has ended or retires.
func (t *Trunk) collect(c *connection, b *batch) bool {
	b.clear()
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns[c.id] != c || t.closed || c.retires {
		return false
	}
	if !c.told {
		c.told = true
		t.collectResumed(b)
	}
	if c.asks {
		c.asks = false
		b.small = frame.Ping(0).Append(b.small)
		b.ends = append(b.ends, len(b.small))
	}
	if t.resumed != nil { // a new worker: of sessions that it does not know it takes no word, and it is about to say which these are
		t.arm()
		return true
	}
	if !c.late {
		t.collectSmall(now, c, b)
	}
	for total := 0; total < chunksAtOnce; {
		f, ok := t.sender.Next(now, c.id)
		if !ok {
			break
		}
		t.collectFrame(f, b)
		c.path.counts(f.Header, &c.path.sent)
		total += frame.HeaderLen + int(f.Length)
	}
	t.arm()
	return true
}

// collectResumed tells the sessions that this end has from a worker before it, and then that these are all. It is said at
// the begin of each connection, and means nothing to who has heard it.
func (t *Trunk) collectResumed(b *batch) {
	for _, s := range t.sessions {
		if !s.restored || s.over {
			continue
		}
		m := frame.Resume{Session: s.id, Credit: t.receiver.Credit(s.id)}
		m.Wanted, m.Acknowledged = t.receiver.Progress(s.id)
		m.Kept, m.Ended = t.sender.Kept(s.id)
		b.small = m.Append(b.small)
		b.ends = append(b.ends, len(b.small))
	}
	b.small = (&frame.Resume{}).Append(b.small)
	b.ends = append(b.ends, len(b.small))
}

// collectSmall takes what is small and waited for: it goes before chunks.
func (t *Trunk) collectSmall(now time.Time, c *connection, b *batch) {
	for len(b.small) < smallAtOnce {
		at := len(b.small)
		if state, ok := t.receiver.Next(now); ok {
			if s := t.sessions[state.Session]; s != nil && s.state == asking && s.mine {
				continue // it might overtake the OPEN on another connection, and says nothing that OPEN does not
			}
			b.small = state.Append(b.small)
		} else if next := t.nextControl(c, nil); len(next) > 0 {
			b.small = append(b.small, next...)
		}
		if len(b.small) == at {
			return
		}
		b.ends = append(b.ends, len(b.small))
	}
}

func (t *Trunk) collectFrame(f stripe.Frame, b *batch) {
	var payload []byte
	switch f.Type {
	case frame.TypeData:
		payload = t.slots.all.Bytes(f.Chunk.Slot)[f.Chunk.At:][:f.Length]
		t.slots.hold(f.Chunk.Slot)
	case frame.TypeAbort:
		payload = []byte{byte(f.Cause), 0, 0, 0}
	}
	b.chunks, b.bytes = append(b.chunks, f), append(b.bytes, payload)
}

// put seals the batch into what the connection sends next.
func (b *batch) put(to *link.Writer) error {
	at := 0
	for _, end := range b.ends {
		if err := to.PutFrame(b.small[at:end]); err != nil {
			return err
		}
		at = end
	}
	for i, f := range b.chunks {
		if err := to.Put(f.Header, b.bytes[i]); err != nil {
			return err
		}
	}
	return nil
}

// collected gives the slots back that a batch held: their bytes are in the connection's own memory, or it has ended.
func (t *Trunk) collected(b *batch) {
	if len(b.chunks) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range b.chunks {
		if f.Type == frame.TypeData {
			t.slots.drop(f.Chunk.Slot)
		}
	}
}
