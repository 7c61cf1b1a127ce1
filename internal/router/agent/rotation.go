package agent

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"scaffold.dev/scaffold/internal/api/member"
	"scaffold.dev/scaffold/wire"
)

// Rotate gets the router another key and has its session begin anew with it.
func (r *Router) Rotate(ctx context.Context) (ed25519.PublicKey, error) {
	r.mu.Lock()
	endpoint, session := r.joined, r.in
	r.mu.Unlock()
	if r.Credentials == nil {
		return nil, member.ErrNoKeys
	}
	if session == nil {
		return nil, member.ErrNoSession
	}
	key, err := r.Credentials.RotateAt(ctx, endpoint, r.Dial, r.Controllers.Several())
	if err != nil {
		return nil, err
	}
	r.Log.Info("this router has another key; joining with it", "key", fmt.Sprintf("%08x", wire.KeyID(key)))
	session.End()
	return key, nil
}
