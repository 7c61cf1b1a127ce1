package ofconn

import (
	"fmt"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// deliver takes a message of n bytes to whom it is for. An error ends the connection.
func (c *Conn) deliver(m ofp.Message, n int) error {
	switch body := m.Body.(type) {
	case ofp.EchoRequest:
		c.out.try(ofp.Message{Version: c.version, XID: m.XID, Body: ofp.EchoReply(body)})
	case ofp.EchoReply, ofp.Hello:
	case ofp.PacketIn:
		c.punt(body)
	default:
		if !c.calls.answer(m, n, c.cfg.Answer) {
			return c.tell(m, n)
		}
	}
	return nil
}

func (c *Conn) punt(p ofp.PacketIn) {
	c.counts.packetIns.Add(1)
	select {
	case c.packetIns <- p:
	default:
		c.counts.dropped.Add(1)
	}
}

// maxNews is the size in bytes of the largest message that a switch has reason to send unasked, packets
// apart: with it the queue of events is bounded in bytes.
const maxNews = 16 << 10

func (c *Conn) tell(m ofp.Message, n int) error {
	switch m.Body.(type) {
	case ofp.BarrierReply, ofp.MultipartReply, ofp.BundleControl: // nobody waits for it any more
		return nil
	}
	if n > maxNews {
		t := m.Body.Type(c.version)
		return c.damage(m.XID, fmt.Errorf("%v of %d bytes that nobody asked for, at most %d are taken", t, n, maxNews))
	}
	select {
	case c.events <- m:
		return nil
	default:
		return fmt.Errorf("%d of them wait: %w", c.cfg.Events, ErrBehind)
	}
}
