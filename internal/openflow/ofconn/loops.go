package ofconn

import (
	"errors"
	"fmt"
	"os"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// write ends with the outbox, which end closes.
func (c *Conn) write() {
	var b []byte
	for {
		var err error
		if b, err = c.out.take(b); err != nil {
			return
		}
		c.nc.SetWriteDeadline(time.Now().Add(c.cfg.Silence))
		if _, err := c.nc.Write(b); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = fmt.Errorf("it takes nothing for %v: %w", c.cfg.Silence, ErrSilent)
			}
			c.end(err)
			return
		}
	}
}

// read ends with the connection, which end closes.
func (c *Conn) read() {
	defer close(c.packetIns)
	defer close(c.events)
	for {
		b, h, err := c.frame()
		if err != nil {
			c.end(err)
			return
		}
		m, err := ofp.Parse(b)
		c.in.Discard(h.Len) //nolint:errcheck // frame has looked at them
		if err == nil {
			err = c.deliver(m, h.Len)
		} else {
			err = c.damage(h.XID, err)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// frame waits for a whole message. Halfway through the time that a peer may be silent it is asked
// whether it is there.
func (c *Conn) frame() ([]byte, ofp.Header, error) {
	b, err := c.await(ofp.HeaderLen)
	if err != nil {
		return nil, ofp.Header{}, err
	}
	h, err := ofp.ParseHeader(b)
	if err != nil {
		return nil, h, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if h.Version != c.version {
		return nil, h, fmt.Errorf("a message of %v after HELLOs that agreed on %v: %w", h.Version, c.version, ErrDamaged)
	}
	b, err = c.await(h.Len)
	return b, h, err
}

// await waits until n bytes are there. Every byte is a sign of life.
func (c *Conn) await(n int) ([]byte, error) {
	asked := false
	for {
		had := c.in.Buffered()
		c.nc.SetReadDeadline(time.Now().Add(c.cfg.Silence / 2))
		b, err := c.in.Peek(n)
		if err == nil {
			return b, nil
		}
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return nil, ended(err)
		case c.in.Buffered() > had:
			asked = false
		case asked:
			return nil, fmt.Errorf("it has said nothing for %v: %w", c.cfg.Silence, ErrSilent)
		default:
			asked = true
			c.out.try(c.message(ofp.EchoRequest{}))
		}
	}
}

// damage counts a message that could not be read or taken. Whoever waits for it learns why.
func (c *Conn) damage(id uint32, err error) error {
	c.calls.fail(id, fmt.Errorf("%w: %w", ErrDamaged, err))
	if n := c.counts.damaged.Add(1); n > uint64(c.cfg.Damaged) {
		return fmt.Errorf("%w: %d messages, the last: %w", ErrDamaged, n, err)
	}
	return nil
}
