package store

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A Choice is what is stored about whether the network has keys, as far as this store can tell before anybody leads.
type Choice struct {
	Trust string // what was said when the network was new; "" in one of before that was stored
	Key   bool   // it has a key
	Begun bool   // a controller has led it
}

// PutTrust stores what was decided for the network.
func PutTrust(trust string) Change { return Change{trustKey, trust} }

const trustKey = "trust"

// Choice reads what this machine knows: of one of several controllers without asking the others, who may not run yet.
// One that has just been taken in may know nothing.
func (s *Store) Choice(ctx context.Context) (c Choice, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var own []clientv3.OpOption
	if s.cfg.Cluster != nil {
		own = append(own, clientv3.WithSerializable())
	}
	for key, take := range map[string]func([]byte) error{
		trustKey: func(value []byte) error { return json.Unmarshal(value, &c.Trust) },
		"key":    func([]byte) error { c.Key = true; return nil },
		"epoch":  func([]byte) error { c.Begun = true; return nil },
	} {
		answer, err := s.etcd().Get(ctx, s.prefix+key, own...)
		if err != nil {
			return c, fmt.Errorf("store: read %s: %w", s, err)
		}
		for _, kv := range answer.Kvs {
			if err := take(kv.Value); err != nil {
				return c, fmt.Errorf("store: the record %s cannot be read: %w", key, err)
			}
		}
	}
	return c, nil
}
