package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/tests/freeport"
	"scaffold.dev/scaffold/sid"
)

// patience ends a wait for what never comes.
const patience = 60 * time.Second

// A trio is three stores of one cluster in this process.
type trio struct {
	t       *testing.T
	dirs    map[string]string
	members []Peer
	open    map[string]*Store
	lease   time.Duration
}

func newTrio(t *testing.T) *trio {
	c := &trio{t: t, dirs: map[string]string{}, open: map[string]*Store{}, lease: 2 * time.Second}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("c%d", i)
		c.dirs[name] = filepath.Join(t.TempDir(), name)
		c.members = append(c.members, Peer{Name: name, URL: "http://" + freeport.Address(t)})
	}
	t.Cleanup(func() {
		for _, s := range c.open {
			s.Close()
		}
	})
	return c
}

// start opens the store of a member; cluster says with whom.
func (c *trio) start(name string, cluster Cluster) *Store {
	c.t.Helper()
	cluster.Name = name
	if cluster.Peer == "" {
		for _, m := range c.members {
			if m.Name == name {
				cluster.Peer = m.URL
			}
		}
	}
	log := slog.New(slog.NewTextHandler(c.t.Output(), nil))
	s, err := Open(c.t.Context(), Config{Dir: c.dirs[name], Cluster: &cluster, Name: name, Network: "n", Lease: c.lease, Log: log})
	if err != nil {
		c.t.Fatal(err)
	}
	c.open[name] = s
	return s
}

func (c *trio) stop(name string) {
	c.t.Helper()
	if err := c.open[name].Close(); err != nil {
		c.t.Error(err)
	}
	delete(c.open, name)
}

// lead campaigns until it leads.
func lead(t *testing.T, s *Store) *Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		term, err := s.Campaign(ctx, Candidate{Name: s.cfg.Name})
		if err == nil {
			return term
		}
		if ctx.Err() != nil || errors.Is(err, ErrOut) {
			t.Fatalf("%s does not lead: %v", s.cfg.Name, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func service(name string, suffix uint64) Change {
	return PutService(names.Record{Name: name, ID: sid.ServiceID{SS: 1, Suffix: sid.Suffix(suffix)}, Version: 1})
}

func TestALeaderWhoseTermIsOverWritesNothing(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	for _, m := range c.members {
		c.start(m.Name, Cluster{Members: c.members})
	}
	first, second := c.open["c1"], c.open["c2"]
	if err := first.Commit(t.Context(), service("a", 1)); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("a write before any term: %v, want ErrNotLeader", err)
	}
	term := lead(t, first)
	if _, err := first.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(t.Context(), service("a", 1)); err != nil {
		t.Fatal(err)
	}
	stale := *first.fence.Load()
	if err := second.Commit(t.Context(), service("b", 2)); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("a write of one that does not lead: %v, want ErrNotLeader", err)
	}
	term.Resign()
	lead(t, second)
	state, err := second.Begin(t.Context(), "")
	if err != nil || state.Epoch != 2 || len(state.Services) != 1 {
		t.Fatalf("the next leader reads %+v, %v; want epoch 2 and one service", state, err)
	}
	first.fence.Store(&stale) // as one has it whose process stood still while its lease ended
	if err := first.Commit(t.Context(), service("late", 3)); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("a write after the term: %v, want ErrNotLeader", err)
	}
	if state, err := second.Load(t.Context()); err != nil || len(state.Services) != 1 {
		t.Errorf("%d services, %v; want that the late write did nothing", len(state.Services), err)
	}
}

func TestTheNextOneLeadsWhenTheLeadersEtcdIsGone(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	for _, m := range c.members {
		c.start(m.Name, Cluster{Members: c.members})
	}
	term := lead(t, c.open["c1"])
	if _, err := c.open["c1"].Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	c.stop("c1")
	<-term.Done()
	lead(t, c.open["c3"])
	t.Logf("took over after %v", time.Since(begin))
	if err := c.open["c3"].Commit(t.Context(), service("a", 1)); err != nil {
		t.Fatal(err)
	}
	c.start("c1", Cluster{Members: c.members})
	seen := make(chan []Candidate, 16)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.open["c1"].Candidates(ctx, func(list []Candidate, err error) {
		if err == nil {
			seen <- list
		}
	})
	for list := range seen {
		if len(list) > 0 && list[0].Name == "c3" {
			break
		}
	}
}

func TestAClusterGrowsAndReplacesADeadMemberWithoutLosingAnything(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	c.lease = patience // on a busy machine a member that joins holds up the others' votes for more than 2 s
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	alone, err := Open(t.Context(), Config{Dir: c.dirs["c1"], Network: "n", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alone.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := alone.Commit(t.Context(), service("a", 1)); err != nil {
		t.Fatal(err)
	}
	alone.Close()
	first := c.start("c1", Cluster{Members: c.members[:1]})
	term := lead(t, first)
	if _, err := first.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	c.grow("c2", first)
	c.grow("c3", first)
	if err := first.Commit(t.Context(), service("b", 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.AddMember(t.Context(), "c3", "http://127.0.0.1:9"); !errors.Is(err, ErrMember) {
		t.Errorf("a second c3: %v, want ErrMember", err)
	}
	c.stop("c3")
	cut(firstLog, 2000)(t, c.dirs["c3"])
	_, err = Open(t.Context(), Config{Dir: c.dirs["c3"], Cluster: &Cluster{Name: "c3", Peer: c.members[2].URL}, Network: "n", Log: log})
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "scaffold controller remove c3") {
		t.Fatalf("its log is damaged: %v; want to be told how it is replaced", err)
	}
	if err := first.RemoveMember(t.Context(), "c3"); err != nil {
		t.Fatal(err)
	}
	if err := first.RemoveMember(t.Context(), "c3"); !errors.Is(err, ErrNoMember) {
		t.Errorf("to take it out again: %v, want ErrNoMember", err)
	}
	must(t, os.Rename(filepath.Join(c.dirs["c3"], "etcd"), filepath.Join(c.dirs["c3"], "etcd.damaged")))
	third := c.grow("c3", first)
	term.Resign()
	c.stop("c1")
	lead(t, third)
	state, err := third.Begin(t.Context(), "")
	if err != nil || len(state.Services) != 2 || state.Epoch != 3 || state.ID == "" {
		t.Errorf("the new member reads %+v, %v; want two services of the third epoch", state, err)
	}
}

func TestAMemberIsTakenOutOnceTheOthersHaveBeenConnectedLongEnough(t *testing.T) {
	t.Parallel()
	tries := 0
	err := onceWell(t.Context(), func(context.Context) error {
		if tries++; tries < 3 {
			return rpctypes.ErrUnhealthy
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("%v after %d tries, want that etcd's refusals are waited for", err, tries)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = onceWell(ctx, func(context.Context) error { cancel(); return rpctypes.ErrUnhealthy })
	if !errors.Is(err, rpctypes.ErrUnhealthy) || !strings.Contains(err.Error(), "start those that are away") {
		t.Errorf("%v, want to be told what to do", err)
	}
	if err := onceWell(t.Context(), func(context.Context) error { return rpctypes.ErrMemberNotFound }); !errors.Is(err, rpctypes.ErrMemberNotFound) {
		t.Errorf("%v, want what no wait mends at once", err)
	}
}

// grow adds a member and waits until it has a vote.
func (c *trio) grow(name string, leader *Store) *Store {
	c.t.Helper()
	var peer string
	for _, m := range c.members {
		if m.Name == name {
			peer = m.URL
		}
	}
	s := c.start(name, Cluster{Join: func(ctx context.Context) (list []Peer, err error) {
		for ctx.Err() == nil { // etcd refuses as long as it finds the cluster unwell
			if list, err = leader.AddMember(ctx, name, peer); err == nil {
				return list, nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		return list, err
	}})
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, err := leader.Promote(c.t.Context())
		list, failed := leader.Members(c.t.Context())
		for _, m := range list {
			if m.Name == name && !m.New {
				return s
			}
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s gets no vote: %v, %v, %v", name, list, err, failed)
		}
	}
}

func TestAStoreOfAnotherNetworkIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	for _, network := range []string{"n", "m"} {
		s, err := Open(t.Context(), Config{Dir: dir, Network: network, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Begin(t.Context(), "")
		s.Close()
		if network == "n" && err != nil {
			t.Fatal(err)
		}
		if network == "m" && (!errors.Is(err, ErrOtherNetwork) || !strings.Contains(err.Error(), "--network n")) {
			t.Errorf("%v: want a refusal that names the network of the store", err)
		}
	}
}

func TestADirectoryIsOneControllers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s, err := Open(t.Context(), Config{Dir: dir, Network: "n", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Open(t.Context(), Config{Dir: dir, Network: "n", Log: log}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second controller on the directory: %v, want ErrInUse", err)
	}
}

// A process that was being started while the controller ended has the lock's file open for a moment longer, as a
// duplicate has here.
func TestADirectoryIsTakenWhileAChildOfItsFormerControllerBegins(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir(), Network: "n", Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	former, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.FcntlInt(former.lock.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := former.Close(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*claimEvery, func() { unix.Close(child) })
	next, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v: want it to wait until the child has begun", err)
	}
	next.Close()
}
