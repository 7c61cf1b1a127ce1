package store

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// reread reads, and reads again when etcd gave the read up because its leader had just changed. etcd promises nothing
// less of the next try, and its own client over a network repeats reads by itself; the one that calls functions in this
// process does not.
//
// An etcd that is alone says so, too: its loop of reads takes "there is a leader now" for "there is another leader" when a
// busy machine lets it look for the first time after both the election and the first read. A start of the controller, or
// a restore, failed by chance there.
func reread[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	for {
		answer, err := read(ctx)
		// No pause: the next try waits inside etcd, until its leader has answered.
		if !errors.Is(err, rpctypes.ErrLeaderChanged) || ctx.Err() != nil {
			return answer, err
		}
	}
}

// rereadKV is a KV whose reads are repeated.
type rereadKV struct{ clientv3.KV }

func (kv rereadKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return reread(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) { return kv.KV.Get(ctx, key, opts...) })
}

// rereadCluster is a Cluster whose members are asked for again.
type rereadCluster struct{ clientv3.Cluster }

func (c rereadCluster) MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	return reread(ctx, func(ctx context.Context) (*clientv3.MemberListResponse, error) {
		return c.Cluster.MemberList(ctx, opts...)
	})
}
