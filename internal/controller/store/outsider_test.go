package store

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/tests/freeport"
)

// An outsider is somebody who reaches the port of a member of the cluster, and has nothing else: no certificate, no
// account on the machine.
type outsider struct {
	peer    string // the member's URL
	own     string // where he is reached himself
	cluster string // etcd's number of the cluster
	members []*membership.Member
}

// anybody talks to whoever it is: what refuses him is the other end.
var anybody = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // a thief looks at no certificate

// look asks who is in the cluster.
func (s *outsider) look(ctx context.Context) error {
	answer, err := s.ask(ctx, http.MethodGet, "/members", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	s.cluster = answer.Header.Get("X-Etcd-Cluster-ID")
	return json.NewDecoder(answer.Body).Decode(&s.members)
}

// intrude has the cluster take him in: members hand on to the leader what any of them proposes, and this is a proposal.
func (s *outsider) intrude(ctx context.Context) error {
	me := membership.ConfigChangeContext{Member: membership.Member{ID: 0xbad, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{s.own}, IsLearner: true}}}
	about, err := json.Marshal(me)
	if err != nil {
		return err
	}
	change, err := proto.Marshal(&raftpb.ConfChange{Id: proto.Uint64(7), NodeId: proto.Uint64(uint64(me.ID)), Type: raftpb.ConfChangeAddLearnerNode.Enum(), Context: about})
	if err != nil {
		return err
	}
	to := uint64(s.members[0].ID)
	message, err := proto.Marshal(&raftpb.Message{Type: raftpb.MsgProp.Enum(), From: proto.Uint64(to), To: proto.Uint64(to),
		Entries: []*raftpb.Entry{{Type: raftpb.EntryConfChange.Enum(), Data: change}}})
	if err != nil {
		return err
	}
	answer, err := s.ask(ctx, http.MethodPost, "/raft", message)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the proposal: %s", answer.Status)
	}
	for len(s.members) < 2 { // until he is one of them
		if err := s.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *outsider) ask(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.peer+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	from := types.ID(1)
	if len(s.members) > 0 {
		from = s.members[0].ID
	}
	for key, value := range map[string]string{"X-Server-From": from.String(), "X-Server-Version": "3.7.0", "X-Min-Cluster-Version": "3.0.0", "X-Etcd-Cluster-ID": s.cluster} {
		req.Header.Set(key, value)
	}
	return anybody.Do(req)
}

// steal reads all of the state as a member that learns it, and returns the network's key.
func (s *outsider) steal(ctx context.Context, t *testing.T) ([]byte, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	if err := s.intrude(ctx); err != nil {
		return nil, err
	}
	join := func(context.Context) (all []Peer, err error) {
		for _, m := range s.members {
			p := Peer{Name: m.Name, URL: m.PeerURLs[0]}
			if p.URL == s.own {
				p.Name = "outsider"
			}
			all = append(all, p)
		}
		return all, nil
	}
	copied, err := Open(ctx, Config{Dir: filepath.Join(t.TempDir(), "copy"), Network: "n", Log: slog.New(slog.DiscardHandler),
		Cluster: &Cluster{Name: "outsider", Peer: s.own, Join: join}})
	if err != nil {
		return nil, err
	}
	defer copied.Close()
	for {
		state, err := copied.Load(ctx)
		if err == nil && len(state.Key) > 0 || ctx.Err() != nil {
			return state.Key, err
		}
	}
}

// TestAStrangerReadsTheNetworksKeyWhereControllersSpeakInTheClear is why controllers of a network with keys reach each
// other by TLS: who reaches the port of one that does not needs nothing else. By TLS he does not learn who is there.
func TestAStrangerReadsTheNetworksKeyWhereControllersSpeakInTheClear(t *testing.T) {
	t.Parallel()
	ca, cert, key := pemFiles(t)
	secret := bytes.Repeat([]byte{7}, 32)
	for name, c := range map[string]struct {
		cluster Cluster
		reads   bool
	}{
		"clear": {Cluster{Name: "c1", Peer: "http://" + freeport.Address(t)}, true},
		"TLS":   {Cluster{Name: "c1", Peer: "https://" + freeport.Address(t), CAFile: ca, CertFile: cert, KeyFile: key}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "c1"), Name: "c1", Network: "n", Log: slog.New(slog.DiscardHandler), Cluster: &c.cluster})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			lead(t, s)
			if _, err := s.Begin(t.Context(), "keys"); err != nil {
				t.Fatal(err)
			}
			if err := s.Commit(t.Context(), PutKey(secret)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for _, peer := range []string{c.cluster.Peer, strings.Replace(c.cluster.Peer, "https:", "http:", 1)} {
				thief := outsider{peer: peer, own: "http://" + freeport.Address(t)}
				got, err := thief.steal(ctx, t)
				if read := err == nil && bytes.Equal(got, secret); read != c.reads {
					t.Errorf("by %s he read the key: %v, want %v (%v; he knows of %d members)", peer, read, c.reads, err, len(thief.members))
				}
				if c.reads {
					return
				}
			}
			if members, err := s.Members(t.Context()); err != nil || len(members) != 1 {
				t.Errorf("the cluster is %v, %v; want the one controller", members, err)
			}
		})
	}
}
