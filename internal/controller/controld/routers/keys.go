package routers

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// The controller vouches for the keys by which routers prove to their neighbours who they are (docs/protocol.md §4.2): it
// has each from the router's own stream, and tells it to the others. A key is stored, since neighbours of a router that is
// away go on to hear it.

// checkLinkKey refuses a key by which everybody would have the same secret.
func checkLinkKey(key []byte) error {
	if len(key) == 0 {
		return nil // a router of before
	}
	public, err := ecdh.X25519().NewPublicKey(key)
	if err != nil {
		return fmt.Errorf("link key: %w", err)
	}
	any, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err == nil {
		_, err = any.ECDH(public)
	}
	if err != nil {
		return fmt.Errorf("link key: %w", err)
	}
	return nil
}

// keys are all routers of the network.
func (x *Routers) keys() *apiv1.RouterKeys {
	all := &apiv1.RouterKeys{All: true}
	for name, r := range x.all {
		key, _ := hex.DecodeString(r.LinkKey) // we wrote it
		all.Routers = append(all.Routers, &apiv1.RouterKey{Name: name, LinkKey: key})
	}
	return all
}

// tellKey tells all routers but one what changed. One of before, which told no key, does not know the order.
func (x *Routers) tellKey(changed *apiv1.RouterKey, but *router) {
	order := &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Routers{Routers: &apiv1.RouterKeys{Routers: []*apiv1.RouterKey{changed}}}}
	for _, r := range x.all {
		if r != but && r.Here && r.LinkKey != "" {
			r.session.Send(order)
		}
	}
}
