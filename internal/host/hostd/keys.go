package hostd

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

func (d *daemon) openKeys() error {
	err := d.keys.Take(d.credentials.Directory)
	if err == nil {
		d.identity = identityOf(d.keys.Origin())
	}
	return err
}

// RotateKey gets the host another key.
func (l *local) RotateKey(ctx context.Context, _ *connect.Request[apiv1.RotateKeyRequest]) (*connect.Response[apiv1.RotateKeyResponse], error) {
	key, err := l.d.rotateKey(ctx)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&apiv1.RotateKeyResponse{Key: key, Name: l.d.cfg.Name, Role: string(trust.Host)}), nil
}

// rotateKey asks the controller, and joins anew with what it gave: flows and registrations stay as they are.
func (d *daemon) rotateKey(ctx context.Context) (ed25519.PublicKey, error) {
	d.rotating.Lock()
	defer d.rotating.Unlock()
	joined, _, _, trouble := d.control.state()
	_, client, _ := d.control.current()
	if !joined || client == nil {
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("the controller is to agree, and there is no session with it now: %s", cmp.Or(trouble, "it was not reached yet")))
	}
	key, err := d.credentials.Rotate(ctx, apiv1connect.NewTrustClient(client, api.BaseURL()))
	if err != nil {
		return nil, err
	}
	if err := d.keys.Take(d.credentials.Directory); err != nil {
		return nil, err
	}
	d.log.Info("this host has another key; joining with it", "key", fmt.Sprintf("%08x", wire.KeyID(key)))
	d.call(ctx, d.control.again)
	return key, nil
}

// member reports whether the host has a credential, or one that cannot be read: unsigned messages are not for it.
func (d *daemon) member() bool {
	m, err := d.credentials.Member()
	return m != nil || err != nil
}

// renewed keeps a fresh credential, for the connections to come.
func (d *daemon) renewed(fresh *apiv1.Credential) {
	if err := d.credentials.Take(fresh); err != nil {
		d.log.Error("credential", "error", err)
	}
}
