package lead

import (
	"context"
	"errors"

	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/store"
)

// trustFailures is how many attempts in a row, half a second apart, are worth a line: etcd elects its own leader meanwhile.
const trustFailures = 10

// followTrust takes up the network's keys and what is revoked, as the controller that leads stores it: a standby speaks
// by TLS too, and lets nobody in who was forgotten. The one that leads knows by itself. It returns an error where the
// network is not what this controller was told.
func (c *Process) followTrust(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	failures := 0
	c.store.Trust(ctx, func(state store.State, err error) {
		if c.term.Load() != nil {
			return
		}
		if err == nil {
			if wrong := c.cfg.Disagrees(c.store, state); wrong != nil {
				end(wrong)
				return
			}
		}
		if err == nil && len(state.Key) > 0 && c.Gate != nil {
			_, err = c.Gate.Certify(state.Key, state.Second, c.cfg.Network)
		}
		for _, r := range state.Revoked {
			if c.Gate != nil {
				c.Gate.Revoke(r)
			}
		}
		if err == nil {
			failures = 0
		} else if failures++; failures == trustFailures {
			c.log.Warn("this controller does not know what changed about the network's members; trying again", "error", err)
		}
	})
	if cause := context.Cause(ctx); errors.Is(cause, config.ErrTrust) || errors.Is(cause, config.ErrKeysMeanwhile) {
		return cause
	}
	return nil
}
