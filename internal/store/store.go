package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A Config says where the state is.
type Config struct {
	Dir       string   // embedded: the directory of its data
	Endpoints []string // or an etcd elsewhere; Dir is not used then
	Network   string   // several networks may share one etcd
	Log       *slog.Logger
}

// commitTimeout bounds one write. A healthy disk takes milliseconds.
const commitTimeout = 3 * time.Second

// loadTimeout bounds the reading of everything.
const loadTimeout = 15 * time.Second

// ErrAway says that no etcd answers at its endpoints.
var ErrAway = errors.New("no etcd answers")

// batch is how many changes fit into one of etcd's transactions (its default limit is 128).
const batch = 100

// A Store is safe for use by several goroutines; commits happen one after the other.
type Store struct {
	cfg    Config
	prefix string
	mu     sync.Mutex // serializes commits and the change of server
	server *embedded  // nil where etcd is elsewhere
	client *clientv3.Client
}

// Open starts or reaches etcd.
func Open(cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, prefix: "/scaffold/" + cfg.Network + "/"}
	if len(cfg.Endpoints) == 0 {
		return s, s.start()
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: cfg.Endpoints, DialTimeout: commitTimeout, Logger: logger(cfg.Log, newBroken())})
	if err != nil {
		return nil, fmt.Errorf("store: reach etcd at %s: %w", strings.Join(cfg.Endpoints, ", "), err)
	}
	s.client = client
	return s, nil
}

func (s *Store) start() error {
	dir, err := filepath.Abs(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := room(dir); err != nil {
		return err
	}
	server, err := openEmbedded(dir, s.cfg.Log)
	if err != nil {
		return err
	}
	s.server, s.client = server, server.client
	return nil
}

// Close stops an embedded etcd. Commits are durable before they return, so nothing is lost without it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return s.client.Close()
	}
	if !s.server.close() {
		return errors.New("store: etcd does not stop")
	}
	return nil
}

// Begin counts a start of the controller and returns everything that is stored.
func (s *Store) Begin(ctx context.Context) (State, error) {
	state, err := s.Load(ctx)
	if err != nil {
		return state, err
	}
	state.Epoch++
	return state, s.Commit(ctx, Change{"epoch", state.Epoch})
}

// Load returns everything that is stored, from one revision.
func (s *Store) Load(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var state State
	s.mu.Lock()
	client := s.client
	s.mu.Unlock()
	answer, err := client.Get(ctx, s.prefix, clientv3.WithPrefix())
	if s.server == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return state, fmt.Errorf("store: %w at %s: is it running, and is --etcd right?", ErrAway, s)
	}
	if err != nil {
		return state, fmt.Errorf("store: read %s: %w", s, err)
	}
	for _, kv := range answer.Kvs {
		if err := state.read(strings.TrimPrefix(string(kv.Key), s.prefix), kv.Value); err != nil {
			return state, err
		}
	}
	return state, nil
}

// Commit makes all changes durable, or none and says why. More than a transaction holds are cut
// into several, in order.
func (s *Store) Commit(ctx context.Context, changes ...Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	for len(changes) > 0 {
		n := min(len(changes), batch)
		if err := s.commit(ctx, changes[:n]); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// ready finds out before etcd does whether a write can succeed: etcd gives up for good when its
// disk is full.
func (s *Store) ready() error {
	if s.server == nil {
		return nil
	}
	if why := s.server.broken.Load(); why != nil {
		return s.restart(*why)
	}
	return room(s.cfg.Dir)
}

// restart replaces an etcd that gave up, once there is room again.
func (s *Store) restart(why string) error {
	if err := room(s.cfg.Dir); err != nil {
		return err
	}
	if !s.server.close() {
		return fmt.Errorf("store: etcd gave up (%s) and does not stop: restart the controller", why)
	}
	return s.start()
}

func (s *Store) commit(ctx context.Context, changes []Change) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	ops := make([]clientv3.Op, 0, len(changes))
	for _, c := range changes {
		op, err := s.op(c)
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	if _, err := s.client.Txn(ctx).Then(ops...).Commit(); err != nil {
		return fmt.Errorf("store: write %s: %w%s", s, err, s.hint())
	}
	return nil
}

func (s *Store) hint() string {
	if s.server != nil {
		if why := s.server.broken.Load(); why != nil {
			return ": " + *why
		}
	}
	return ""
}

func (s *Store) op(c Change) (clientv3.Op, error) {
	if c.value == nil {
		return clientv3.OpDelete(s.prefix + c.key), nil
	}
	value, err := json.Marshal(c.value)
	if err != nil {
		return clientv3.Op{}, fmt.Errorf("store: encode %s: %w", c.key, err)
	}
	return clientv3.OpPut(s.prefix+c.key, string(value)), nil
}

// String says where the state is.
func (s *Store) String() string {
	if s.server != nil {
		return s.cfg.Dir
	}
	return strings.Join(s.cfg.Endpoints, ", ")
}
