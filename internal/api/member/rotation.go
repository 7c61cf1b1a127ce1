package member

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
)

// ErrNoKeys says that a daemon of an open network has no key that counts.
var ErrNoKeys = connect.NewError(connect.CodeFailedPrecondition, errors.New("this is no member of a network with keys: it has no key to replace"))

// ErrNoSession says that a daemon's key cannot be replaced now.
var ErrNoSession = connect.NewError(connect.CodeUnavailable, errors.New("the controller is to agree, and there is no session with it now"))

// Rotate gets the daemon another key, by a connection that was made with the one that it has. Connections that are made
// from now on show the new one, and the network takes it for the daemon's with the first that joins.
func (c *Credentials) Rotate(ctx context.Context, client apiv1connect.TrustClient) (ed25519.PublicKey, error) {
	m, err := c.Member()
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, ErrNoKeys
	}
	key, err := c.Directory.NextKey() // perhaps that of an attempt whose answer was lost
	if err != nil {
		return nil, err
	}
	answer, err := client.Rotate(ctx, connect.NewRequest(api.SignRotation(key, m.Who().Key)))
	if err != nil {
		return nil, err
	}
	credential := trust.Credential{Certificate: answer.Msg.Certificate, Roots: answer.Msg.Roots}
	if _, err := trust.NewMember(key, credential); err != nil {
		return nil, fmt.Errorf("the controller's answer: %w", err)
	}
	if err := c.Directory.SaveNext(key, credential); err != nil {
		return nil, err
	}
	return key.Public().(ed25519.PublicKey), c.advance()
}

// RotateAt is Rotate by a connection of its own to the controller at the endpoint; see Client.
func (c *Credentials) RotateAt(ctx context.Context, endpoint string, dial api.DialFunc, impatient bool) (ed25519.PublicKey, error) {
	client, err := c.Client(endpoint, dial, impatient)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	return c.Rotate(ctx, apiv1connect.NewTrustClient(client, api.BaseURL()))
}

// advance takes up the next key.
func (c *Credentials) advance() error {
	c.taking.Lock()
	defer c.taking.Unlock()
	m, err := c.Directory.Load()
	if err != nil {
		return fmt.Errorf("the credential: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.member = m
	return nil
}

// DefaultKeyFor is how old a daemon's key becomes.
const DefaultKeyFor = 90 * 24 * time.Hour

// keyLook is how often the age of the key is looked at.
const keyLook = time.Hour

// Keep calls rotate when the key is older than it may become, until ctx ends; never where keep is zero. Daemons that
// joined together do not all rotate together.
func (c *Credentials) Keep(ctx context.Context, keep time.Duration, log *slog.Logger, rotate func(context.Context) error) {
	if keep <= 0 {
		return
	}
	keep = keep - keep/10 + rand.N(keep/10+1)
	tick := time.NewTicker(min(keyLook, keep))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		m, err := c.Member()
		if err != nil || m == nil || time.Since(c.Directory.KeySince()) < keep {
			continue
		}
		if err := rotate(ctx); err != nil {
			log.Warn("the key is due to be replaced; it goes on, trying again", "error", err)
		}
	}
}
