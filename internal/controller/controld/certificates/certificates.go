// Package certificates gives hosts of a network with keys certificates for their locators, and fresh ones well before those
// end (docs/protocol.md §7). What was given is pledged first. An open network gives none.
package certificates

import (
	"context"
	"crypto/ed25519"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/pledges"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// renewals is how often within the shortest validity it is looked which certificates are due.
const renewals = 5

// Hosts have locators, and are told of certificates.
type Hosts interface {
	Key(host string) []byte
	Locators(host string) []sid.Locator      // of where it is
	Left(host string) []sid.Locator          // that it left lately, and nobody else has
	Attached(host string, a *apiv1.Attached) // tells a host that is connected
}

// Members are those of the network.
type Members interface {
	Key() ed25519.PrivateKey                   // the network's; nil in an open one
	Succession(host string, key []byte) []byte // shows that the key took the place of another one; nil: it did not
}

// A Saver keeps records until they are stored.
type Saver interface {
	Later(...store.Change)
}

// A Loop runs what is to be done later in the goroutine that owns the certificates, unless the context ends before.
type Loop interface {
	During(context.Context, time.Duration, func())
}

// A Config is what certificates need of others.
type Config struct {
	Longest time.Duration // that one is valid
	Pledges *pledges.Pledges
	Hosts   Hosts
	Members Members
	Saver   Saver
	Loop    Loop
}

// Certificates are those of one network. The loop owns them.
type Certificates struct{ Config }

// New gives none yet.
func New(cfg Config) *Certificates { return &Certificates{cfg} }

// Restore takes up what was certified before this controller led; keyed says that the network has a key by its
// configuration: it may not have been made yet.
func (x *Certificates) Restore(state store.State, keyed bool) {
	var longest time.Duration
	if keyed {
		longest = x.Longest
	}
	for _, p := range x.Pledges.Restore(state, longest) {
		x.Saver.Later(store.PutPledge(p))
	}
}

// For says that a host, by its key, owns a locator; nil in an open network.
func (x *Certificates) For(host string, key []byte, l sid.Locator) []byte {
	if x.Members.Key() == nil || len(key) != ed25519.PublicKeySize {
		return nil
	}
	p, valid := x.Pledges.Give(l, host, x.Longest)
	x.Saver.Later(store.PutPledge(p))
	now := x.Pledges.Now()
	c := wire.Certify(x.Members.Key(), key, l, now.Add(-api.JoinSkew).Unix(), now.Add(valid).Unix())
	return c.Append(nil)
}

// During sends a host fresh certificates, where those that it has will end, for as long as its session lasts.
func (x *Certificates) During(session context.Context, host string) {
	if x.Members.Key() == nil {
		return
	}
	x.Loop.During(session, min(x.Longest, pledges.NewcomerFor)/renewals, func() {
		for _, l := range x.Hosts.Locators(host) {
			if x.Pledges.Due(l) {
				x.send(host, l)
			}
		}
		x.During(session, host)
	})
}

// Renew sends a host fresh certificates for where it is, and for what it left lately.
func (x *Certificates) Renew(host string) {
	for _, l := range x.Hosts.Locators(host) {
		x.send(host, l)
	}
	x.RenewLeft(host)
}

// RenewLeft gives a host that has another key certificates for the locators that it left lately: who knows it by one
// of them takes no word of it that names another key.
func (x *Certificates) RenewLeft(host string) {
	here := x.Hosts.Locators(host)
	for _, l := range x.Hosts.Left(host) {
		if !slices.Contains(here, l) {
			x.send(host, l)
		}
	}
}

func (x *Certificates) send(host string, l sid.Locator) {
	key := x.Hosts.Key(host)
	x.Hosts.Attached(host, &apiv1.Attached{Locator: l.String(), Certificate: x.For(host, key, l), Succession: x.Members.Succession(host, key)})
}
