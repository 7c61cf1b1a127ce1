package agent

import (
	"context"
	"crypto/ed25519"
	"errors"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
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
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("the controller is to agree, and there is no session with it now"))
	}
	client, err := r.Credentials.Client(endpoint, r.Dial, r.Controllers.Several())
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	key, err := r.Credentials.Rotate(ctx, apiv1connect.NewTrustClient(client, api.BaseURL()))
	if err != nil {
		return nil, err
	}
	r.Log.Info("this router has another key; joining with it", "key", wire.KeyID(key))
	session.End()
	return key, nil
}
