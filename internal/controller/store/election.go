package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// ErrNotLeader says that this controller does not lead, or no longer: nothing was written.
var ErrNotLeader = errors.New("this controller does not lead the network")

// A Candidate is a controller that runs: one of them leads.
type Candidate struct {
	Name    string   `json:"name"`
	API     []string `json:"api"` // endpoints
	Version string   `json:"version,omitempty"`
	Since   int64    `json:"since"` // Unix ms, for people
	Once    bool     `json:"once"`  // it does not carry out an order again that comes again
}

// A Term is the time in which this controller leads. Nothing is written outside of one: each write carries the
// condition that the term still runs, and etcd checks it.
type Term struct {
	s        *Store
	session  *concurrency.Session
	election *concurrency.Election
	done     chan struct{}
}

// Elected reports whether there may be several controllers, so that one has to lead before anything is written.
func (s *Store) Elected() bool { return s.cfg.Cluster != nil || len(s.cfg.Endpoints) > 0 }

// Campaign waits until this controller leads. It shows its candidacy to the others meanwhile. An error other than
// ctx's is worth another attempt, but for ErrOut.
func (s *Store) Campaign(ctx context.Context, me Candidate) (*Term, error) {
	if !s.Elected() {
		return &Term{s: s, done: make(chan struct{})}, nil
	}
	if err := s.revive(); err != nil {
		return nil, err
	}
	if !s.voter() {
		return nil, fmt.Errorf("store: %s learns what the cluster holds and has no vote yet", me.Name)
	}
	value, err := json.Marshal(me)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	session, err := s.session(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: reach %s: %w", s, err)
	}
	if err := s.reachable(ctx); err != nil { // now: one that stands by for months is to be reached, too
		s.leave(session)
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(session.Ctx(), stop)()
	defer s.onEnd(stop)()
	election := concurrency.NewElection(session, s.prefix+"leader")
	if err := election.Campaign(running, string(value)); err != nil {
		s.leave(session)
		return nil, fmt.Errorf("store: run for the lead in %s: %w", s, err)
	}
	t := &Term{s: s, session: session, election: election, done: make(chan struct{})}
	s.fence.Store(&fence{election.Key(), election.Rev()})
	go func() { // ends with the session, which Resign ends, or with etcd
		defer close(t.done)
		select {
		case <-session.Done():
		case <-s.ended():
		}
		s.fence.Store(&fence{})
	}()
	return t, nil
}

// session is a lease that is kept alive. The candidacy goes with it.
func (s *Store) session(ctx context.Context) (*concurrency.Session, error) {
	granting, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	seconds := max(1, int(math.Ceil(s.cfg.Lease.Seconds())))
	lease, err := s.etcd().Grant(granting, int64(seconds))
	if err != nil {
		return nil, err
	}
	// The session's own context outlives ctx: Resign revokes the lease, so that the next one need not wait for its end.
	return concurrency.NewSession(s.etcd(), concurrency.WithTTL(seconds), concurrency.WithLease(lease.ID))
}

// leave gives a lease back; one that cannot be given back ends by itself.
func (s *Store) leave(session *concurrency.Session) {
	session.Orphan()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = s.etcd().Revoke(ctx, session.Lease())
}

// Done is closed when the term is over.
func (t *Term) Done() <-chan struct{} { return t.done }

// Resign ends the term, and another controller leads at once.
func (t *Term) Resign() {
	if t.session == nil {
		return
	}
	t.s.fence.Store(&fence{})
	t.s.leave(t.session)
	<-t.done
}

// A fence is the key that exists as long as a term runs, and the revision of its creation; without a key nobody
// writes.
type fence struct {
	key      string
	revision int64
}

// guard is the condition of each write: none where this controller is the only one.
func (s *Store) guard() ([]clientv3.Cmp, error) {
	if !s.Elected() {
		return nil, nil
	}
	f := s.fence.Load()
	if f == nil || f.key == "" {
		return nil, fmt.Errorf("store: %w: nothing was saved", ErrNotLeader)
	}
	return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(f.key), "=", f.revision)}, nil
}

// Candidates tells f, until ctx ends, which controllers run, the one that leads first, and again on each change. With
// an error nobody can say.
func (s *Store) Candidates(ctx context.Context, f func([]Candidate, error)) {
	s.watch(ctx, func(ctx context.Context) error { return s.candidates(ctx, f) }, func(err error) { f(nil, err) })
}

// watch runs what watches, until ctx ends, and says why it failed before it runs it again.
func (s *Store) watch(ctx context.Context, watches func(context.Context) error, failed func(error)) {
	for ctx.Err() == nil {
		err := watches(ctx)
		if ctx.Err() != nil {
			return
		}
		failed(err)
		select {
		case <-time.After(watchAgain):
		case <-ctx.Done():
		}
	}
}

// watchAgain is the pause after a watch failed.
const watchAgain = 500 * time.Millisecond

func (s *Store) candidates(ctx context.Context, f func([]Candidate, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.onEnd(cancel)()
	prefix := s.prefix + "leader/"
	var told []Candidate
	for first := true; ; first = false {
		once, done := context.WithTimeout(ctx, commitTimeout)
		answer, err := s.etcd().Get(once, prefix, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		done()
		if err != nil {
			return fmt.Errorf("store: ask %s who leads: %w", s, err)
		}
		list := make([]Candidate, 0, len(answer.Kvs))
		for _, kv := range answer.Kvs {
			var c Candidate
			if json.Unmarshal(kv.Value, &c) == nil {
				list = append(list, c)
			}
		}
		if first || !slices.EqualFunc(told, list, Candidate.same) {
			f(list, nil)
			told = list
		}
		watching, done := context.WithTimeout(ctx, askAgain)
		err = s.changed(watching, prefix, answer.Header.Revision)
		quiet := errors.Is(watching.Err(), context.DeadlineExceeded) && ctx.Err() == nil
		done()
		if err != nil && !quiet {
			return err
		}
	}
}

func (c Candidate) same(d Candidate) bool {
	return c.Name == d.Name && c.Version == d.Version && c.Since == d.Since && c.Once == d.Once && slices.Equal(c.API, d.API)
}

// askAgain is how long a watch is believed that tells nothing. One at a member that has lost the others tells nothing for
// ever, and does not end: only a question that enough members have to answer shows that there are not enough.
const askAgain = time.Second

// changed waits until something under the prefix is no longer as it was at the revision.
func (s *Store) changed(ctx context.Context, prefix string, revision int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for answer := range s.etcd().Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision+1)) {
		if err := answer.Err(); err != nil {
			return err
		}
		if len(answer.Events) > 0 {
			return nil
		}
	}
	return errors.New("store: the watch ended")
}
