package store

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// An Authority is the network's second key while its key is rotated, beside the one that certifies. Afterwards it says
// when that ended: who was certified before is to hear of it.
type Authority struct {
	Seed  []byte `json:"seed,omitempty"` // Ed25519; nil: there is no second key
	Next  bool   `json:"next,omitempty"` // it is to certify; otherwise it did
	Since int64  `json:"since"`          // seconds since 1970

	Retired []RetiredKey `json:"retired,omitempty"` // keys that certified once, the latest last
}

// A RetiredKey is one that counts no more: whose certificate is by it was a member, and is told what happened.
type RetiredKey struct {
	ID string `json:"id"` // the beginning of its SHA-256
	At int64  `json:"at"` // seconds since 1970
}

// PutSecondKey stores the network's second key, or that there is none any more.
func PutSecondKey(a Authority) Change { return Change{secondKey, a} }

const secondKey = "key-second"

// Trust tells f, until ctx ends, by which keys the network is known and which are revoked, and again on each change: of
// the state Key, Second, Trust, Epoch and Revoked. With an error nobody can say.
func (s *Store) Trust(ctx context.Context, f func(State, error)) {
	s.watch(ctx, func(ctx context.Context) error { return s.trust(ctx, f) }, func(err error) { f(State{}, err) })
}

func (s *Store) trust(ctx context.Context, f func(State, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.onEnd(cancel)()
	prefixes := []string{s.prefix + "key", s.prefix + "revoked/", s.prefix + trustKey, s.prefix + "epoch"}
	for {
		once, done := context.WithTimeout(ctx, loadTimeout)
		var all []clientv3.Op
		for _, prefix := range prefixes {
			all = append(all, clientv3.OpGet(prefix, clientv3.WithPrefix()))
		}
		answer, err := s.etcd().Txn(once).Then(all...).Commit()
		done()
		if err != nil {
			return fmt.Errorf("store: ask %s for the network's keys: %w", s, err)
		}
		var state State
		for _, part := range answer.Responses {
			for _, kv := range part.GetResponseRange().Kvs {
				if err := state.read(string(kv.Key[len(s.prefix):]), kv.Value); err != nil {
					return err
				}
			}
		}
		f(state, nil)
		if err := s.changedAny(ctx, prefixes, answer.Header.Revision); err != nil {
			return err
		}
	}
}

// changedAny is changed under one of the prefixes.
func (s *Store) changedAny(ctx context.Context, prefixes []string, revision int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan error, len(prefixes))
	for _, prefix := range prefixes {
		go func() { first <- s.changed(ctx, prefix, revision) }() // ends with ctx
	}
	return <-first
}
