package ofconn

import (
	"context"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// message gives a body the connection's version and a new id.
func (c *Conn) message(b ofp.Body) ofp.Message { return numbered(c.version, c.calls.next(), b) }

// numbered makes a message; what goes into a bundle has the id of what puts it there.
func numbered(v ofp.Version, id uint32, b ofp.Body) ofp.Message {
	if add, ok := b.(ofp.BundleAdd); ok {
		add.Message.Version, add.Message.XID = v, id
		b = add
	}
	return ofp.Message{Version: v, XID: id, Body: b}
}

// Send sends messages one behind the other and waits for nothing but room. The switch's refusals come
// as Events.
func (c *Conn) Send(bodies ...ofp.Body) error {
	messages := make([]ofp.Message, len(bodies))
	for i, b := range bodies {
		messages[i] = c.message(b)
	}
	return c.out.add(messages...)
}

// TrySend is Send of one message that is not worth waiting for: it reports whether there was room.
func (c *Conn) TrySend(body ofp.Body) bool { return c.out.try(c.message(body)) }

// Do sends messages and a barrier, and returns when the switch is done with all of them: nil, or its
// refusals, each an ofp.Error, joined.
func (c *Conn) Do(ctx context.Context, bodies ...ofp.Body) error {
	_, err := c.do(ctx, nil, bodies)
	return err
}

// do is Do behind messages of before, whose ids it takes; it returns its own.
func (c *Conn) do(ctx context.Context, before []uint32, bodies []ofp.Body) ([]uint32, error) {
	w, err := c.call(ctx, before, append(bodies[:len(bodies):len(bodies)], ofp.BarrierRequest{}))
	return w.ids, err
}

// Ask sends a message and returns its answer. A refusal is an ofp.Error.
func (c *Conn) Ask(ctx context.Context, body ofp.Body) (ofp.Body, error) {
	w, err := c.call(ctx, nil, []ofp.Body{body})
	if err != nil {
		return nil, err
	}
	return w.parts[0], nil
}

// Collect asks for something that may come in several parts, and returns all of them.
func (c *Conn) Collect(ctx context.Context, ask ofp.Ask) ([]ofp.Part, error) {
	w, err := c.call(ctx, nil, []ofp.Body{ofp.MultipartRequest{Ask: ask}})
	if err != nil {
		return nil, err
	}
	var parts []ofp.Part
	for _, b := range w.parts {
		if reply, ok := b.(ofp.MultipartReply); ok {
			parts = append(parts, reply.Part)
		}
	}
	return parts, nil
}

// call sends messages and waits for the answer to the last. What it returns is never nil.
func (c *Conn) call(ctx context.Context, before []uint32, bodies []ofp.Body) (*call, error) {
	w, err := c.calls.begin(len(bodies), before)
	if err != nil {
		return &call{}, err
	}
	messages := make([]ofp.Message, len(bodies))
	for i, b := range bodies {
		messages[i] = numbered(c.version, w.ids[i], b)
	}
	if err := c.out.add(messages...); err != nil {
		c.calls.fail(w.ends, err)
		return w, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		c.calls.fail(w.ends, context.Cause(ctx))
		<-w.done
	}
	return w, w.err()
}

// SetRole asks for a role under a generation, which must not be older than one that the switch has
// seen: then it refuses with OFPRRFC_STALE.
func (c *Conn) SetRole(ctx context.Context, role ofp.Role, generation uint64) (ofp.RoleReply, error) {
	body, err := c.Ask(ctx, ofp.RoleRequest{RoleState: ofp.RoleState{Role: role, Generation: generation}})
	if err != nil {
		return ofp.RoleReply{}, err
	}
	reply, _ := body.(ofp.RoleReply)
	return reply, nil
}
