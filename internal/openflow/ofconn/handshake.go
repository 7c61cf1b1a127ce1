package ofconn

import (
	"context"
	"errors"
	"fmt"
	"io"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// hello exchanges HELLOs. Both sides send without waiting for the other's, so ours goes out beside the
// reading of theirs.
func (c *Conn) hello() error {
	ours := ofp.Message{Version: c.cfg.Versions.Highest(), Body: ofp.Hello{Versions: c.cfg.Versions}}
	sent := make(chan error, 1)
	go func() { sent <- c.put(ours) }() // ends with the writing, which Close ends
	theirs, err := c.next()
	if err != nil {
		c.nc.Close()
		<-sent //nolint:errcheck // it ended with the connection
		return fmt.Errorf("HELLO of the switch: %w", err)
	}
	if err := <-sent; err != nil {
		return fmt.Errorf("HELLO to the switch: %w", err)
	}
	if refusal, ok := theirs.Body.(ofp.Error); ok {
		return refusal
	}
	v, ok := ofp.Negotiate(c.cfg.Versions, theirs)
	if !ok {
		return c.refuse(theirs)
	}
	c.version = v
	return nil
}

// refuse tells the peer why it is not spoken to, as the specification asks for.
func (c *Conn) refuse(theirs ofp.Message) error {
	speaks := theirs.Version.String()
	if hello, _ := theirs.Body.(ofp.Hello); hello.Versions != 0 {
		speaks = hello.Versions.String()
	}
	err := fmt.Errorf("the switch speaks %s, we speak %v: %w", speaks, c.cfg.Versions, ErrVersion)
	answer := ofp.Refusal("OFPHFC_INCOMPATIBLE")
	answer.Data = []byte(err.Error())
	c.put(ofp.Message{Version: theirs.Version, XID: theirs.XID, Body: answer}) //nolint:errcheck // it may have gone already
	return err
}

// put writes a message at once, before there is a writer.
func (c *Conn) put(m ofp.Message) error {
	b, err := m.Append(nil)
	if err != nil {
		return err
	}
	_, err = c.nc.Write(b)
	return err
}

// next reads the first message, before there is a reader.
func (c *Conn) next() (ofp.Message, error) {
	b, err := c.in.Peek(ofp.HeaderLen)
	if err != nil {
		return ofp.Message{}, ended(err)
	}
	h, err := ofp.ParseHeader(b)
	if err != nil {
		return ofp.Message{}, err
	}
	if h.Type != ofp.TypeHello && h.Type != ofp.TypeError { // who says else may go on for long
		return ofp.Message{}, fmt.Errorf("it begins with % x, which is none: %w", b, ErrVersion)
	}
	if b, err = c.in.Peek(h.Len); err != nil {
		return ofp.Message{}, ended(err)
	}
	defer c.in.Discard(h.Len) //nolint:errcheck // Peek has them
	return ofp.Parse(b)
}

// ended says what an end of the stream means.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the switch has hung up: %w", err)
	}
	return err
}

// learn asks what the switch is.
func (c *Conn) learn(ctx context.Context) error {
	reply, err := c.Ask(ctx, ofp.FeaturesRequest{})
	if err != nil {
		return fmt.Errorf("features of the switch: %w", err)
	}
	features, ok := reply.(ofp.FeaturesReply)
	if !ok {
		return fmt.Errorf("the switch answers %v to the question what it is: %w", reply.Type(c.version), ErrDamaged)
	}
	c.features = features
	return nil
}
