package ofconn

import (
	"context"
	"errors"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// Bundle has the switch do all of bodies at once or nothing of them; no packet sees a part. They may
// be FlowMod, GroupMod and PortMod. The refusals are joined, each an ofp.Error.
func (c *Conn) Bundle(ctx context.Context, bodies ...ofp.Body) error {
	const flags = ofp.BundleAtomic | ofp.BundleOrdered
	id := c.bundles.Add(1)
	step := func(k ofp.BundleKind) ofp.Body { return ofp.BundleControl{ID: id, Kind: k, Flags: flags} }
	all := []ofp.Body{step(ofp.BundleOpen)}
	for _, b := range bodies {
		all = append(all, ofp.BundleAdd{ID: id, Flags: flags, Message: ofp.Message{Body: b}})
	}
	// Open vSwitch would commit what it has without what it refused: ask before.
	ids, err := c.do(ctx, nil, all)
	if err != nil {
		return errors.Join(err, c.discard(step(ofp.BundleDiscard), err))
	}
	_, err = c.do(ctx, ids, []ofp.Body{step(ofp.BundleCommit)}) // what fails only now is refused under its own id
	return err
}

// discard does not wait: what the switch says to it is news to nobody.
func (c *Conn) discard(step ofp.Body, because error) error {
	if c.Err() != nil || errors.Is(because, ofp.ErrUnsayable) || errors.Is(because, ofp.ErrLength) {
		return nil // the connection is gone, or nothing was sent
	}
	return c.Send(step)
}
