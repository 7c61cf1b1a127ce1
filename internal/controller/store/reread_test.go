package store

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// restless is an etcd whose leader changes during each of the next reads.
type restless struct {
	clientv3.KV
	clientv3.Cluster
	changes, reads int
	err            error // of the read after
}

func (r *restless) answer() error {
	if r.reads++; r.changes > 0 {
		r.changes--
		return rpctypes.ErrLeaderChanged
	}
	return r.err
}

func (r *restless) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return nil, r.answer()
}

func (r *restless) MemberList(context.Context, ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	return nil, r.answer()
}

func TestAReadIsRepeatedWhenTheLeaderChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s := filled(t, t.TempDir())
	etcd := s.etcd()
	inner := &restless{changes: 2}
	etcd.KV, etcd.Cluster = rereadKV{inner}, rereadCluster{inner}
	if _, err := etcd.Get(t.Context(), "a"); err != nil || inner.reads != 3 {
		t.Errorf("%v after %d reads, want the answer of the third", err, inner.reads)
	}
	inner.changes, inner.reads = 2, 0
	if _, err := etcd.MemberList(t.Context()); err != nil || inner.reads != 3 {
		t.Errorf("members: %v after %d reads, want the answer of the third", err, inner.reads)
	}
	inner.reads, inner.err = 0, rpctypes.ErrNoSpace
	if _, err := etcd.Get(t.Context(), "a"); !errors.Is(err, rpctypes.ErrNoSpace) || inner.reads != 1 {
		t.Errorf("%v after %d reads, want what no other try mends at once", err, inner.reads)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	inner.changes, inner.reads = 1_000, 0
	if _, err := etcd.Get(over, "a"); !errors.Is(err, rpctypes.ErrLeaderChanged) || inner.reads != 1 {
		t.Errorf("%v after %d reads, want no other try once nobody waits", err, inner.reads)
	}
}

// TestAnEmbeddedEtcdIsReadThroughIt: or the above says nothing of a controller.
func TestAnEmbeddedEtcdIsReadThroughIt(t *testing.T) {
	t.Parallel()
	etcd := filled(t, t.TempDir()).etcd()
	if _, ok := etcd.KV.(rereadKV); !ok {
		t.Errorf("records are read through %T", etcd.KV)
	}
	if _, ok := etcd.Cluster.(rereadCluster); !ok {
		t.Errorf("members are asked for through %T", etcd.Cluster)
	}
}
