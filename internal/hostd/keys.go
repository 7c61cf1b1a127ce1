package hostd

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

// keys are the host's own. It signs by the key that its certificates are of, which is that of before for the moment
// until the network has taken the new one. For every goroutine.
type keys struct {
	mu     sync.Mutex
	key    ed25519.PrivateKey
	before ed25519.PrivateKey // nil where this daemon had no other
	former []ed25519.PublicKey
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// now is the key that the host has.
func (k *keys) now() ed25519.PrivateKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.key
}

// take makes the directory's key the host's.
func (k *keys) take(dir trust.Directory) error {
	key, err := dir.Key()
	if err != nil {
		return err
	}
	former, err := dir.Former()
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil && !k.key.Equal(key) {
		k.before = k.key
	}
	k.key, k.former = key, former
	return nil
}

// origin is the first key that the host had: what others know it by follows from it.
func (k *keys) origin() ed25519.PublicKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.former) > 0 {
		return k.former[0]
	}
	return publicOf(k.key)
}

// all are the public keys that the host has and had.
func (k *keys) all() []ed25519.PublicKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]ed25519.PublicKey{publicOf(k.key)}, k.former...)
}

// sign sets by which key, and with which succession, the holder of the certificates signs.
func (k *keys) sign(s *session.Keys, succession []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range s.Certificates {
		if k.before != nil && c.Key == wire.Key(publicOf(k.before)) {
			s.Host = k.before
		}
		if c.Key == wire.Key(publicOf(k.key)) {
			s.Host = k.key
			break
		}
	}
	if by, err := wire.ParseSuccession(succession); err == nil && s.Host.Equal(k.key) {
		s.Succession = &by
	}
}

func (d *daemon) openKeys() error {
	err := d.keys.take(d.credentials.Directory)
	if err == nil {
		d.identity = identityOf(d.keys.origin())
	}
	return err
}

// permitted says why a permit is not for this host; one for a key that it had before is.
func (d *daemon) permitted(p wire.Permit, now time.Time) (err error) {
	all := d.keys.all()
	for i := range all {
		if err = p.Check(p.Service, p.ServiceKey[:], all[len(all)-1-i], now.Unix()); err == nil { // the key of now is last: its error counts
			return nil
		}
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
	if err := d.keys.take(d.credentials.Directory); err != nil {
		return nil, err
	}
	d.log.Info("this host has another key; joining with it", "key", wire.KeyID(key))
	d.call(ctx, d.control.again)
	return key, nil
}
