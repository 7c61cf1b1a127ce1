package store

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"scaffold.dev/scaffold/internal/api/versions"
)

// A Config says where the state is.
type Config struct {
	Dir       string        // embedded: the directory of its data
	Endpoints []string      // or an etcd elsewhere; Dir is not used then
	TLS       *tls.Config   // to that; nil: cleartext
	Cluster   *Cluster      // embedded, as one member of several; nil: alone
	Name      string        // of the controller, for messages
	Network   string        // several networks may share an etcd elsewhere
	Version   string        // of this program, for messages of others
	Lease     time.Duration // how long a leader that is not heard of leads on; 0: DefaultLease
	Log       *slog.Logger

	wrote  func() // tests: after each transaction
	ops    int    // tests: how many changes a transaction takes
	copies uint64 // tests: after how many changes etcd lets go of its log
}

// DefaultLease is how long the silence of a leader is waited for. etcd's own elections take up to two seconds, and a
// leader should live through one.
const DefaultLease = 3 * time.Second

// commitTimeout bounds one write. A healthy disk takes milliseconds.
const commitTimeout = 3 * time.Second

// loadTimeout bounds the reading of everything.
const loadTimeout = 15 * time.Second

// ErrAway says that no etcd answers at its endpoints.
var ErrAway = errors.New("no etcd answers")

// A Store is safe for use by several goroutines; commits happen one after the other.
type Store struct {
	cfg    Config
	prefix string
	fence  atomic.Pointer[fence]

	mu     sync.Mutex // serializes commits and the change of server
	left   bool       // a commit may be settled in part only: the next one looks first
	server *embedded  // nil where etcd is elsewhere
	client atomic.Pointer[clientv3.Client]
	now    atomic.Pointer[embedded] // server, for those who must not wait for a commit
	lock   *os.File                 // of Dir
	kept   []Peer                   // who the members were before the first start
	harm   atomic.Pointer[string]   // why the files cannot be used, since the last start of an embedded one
}

// etcd is the client of now: that of an embedded one changes when it is started anew.
func (s *Store) etcd() *clientv3.Client { return s.client.Load() }

// Open starts or reaches etcd. One that is embedded may take long to come up; the end of ctx ends the wait.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Lease <= 0 {
		cfg.Lease = DefaultLease
	}
	s := &Store{cfg: cfg, prefix: everything + cfg.Network + "/"}
	if len(cfg.Endpoints) == 0 {
		if err := s.open(ctx); err != nil {
			return nil, err
		}
		return s, nil
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: cfg.Endpoints, TLS: cfg.TLS, DialTimeout: commitTimeout, DialKeepAliveTime: time.Second, DialKeepAliveTimeout: commitTimeout,
		Logger: logger(cfg.Log, newBroken()),
	})
	if err != nil {
		return nil, fmt.Errorf("store: reach etcd at %s: %w", strings.Join(cfg.Endpoints, ", "), err)
	}
	s.client.Store(client)
	return s, nil
}

// everything is the prefix of all networks' records.
const everything = "/scaffold/"

// open takes the directory and starts etcd in it.
func (s *Store) open(ctx context.Context) error {
	if err := room(s.cfg.Dir); err != nil {
		return err
	}
	if err := s.claim(); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		s.unclaim()
		return err
	}
	return nil
}

func (s *Store) start(ctx context.Context) error {
	dir, err := filepath.Abs(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.harm.Store(nil)
	if err := intact(dir); err != nil {
		why := brief(err)
		s.harm.Store(&why)
		return s.mend(err)
	}
	if s.server == nil { // it is the first start of this process
		if s.kept, err = kept(dir); err != nil {
			return err
		}
	}
	server, err := openEmbedded(ctx, dir, s.cfg)
	if err != nil {
		return err
	}
	s.server = server
	s.client.Store(server.client)
	s.now.Store(server)
	return nil
}

// Close stops an embedded etcd. Commits are durable before they return, so nothing is lost without it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return s.etcd().Close()
	}
	defer s.unclaim()
	if !s.server.close() {
		return errors.New("store: etcd does not stop")
	}
	return nil
}

// Begin counts a start of the controller and returns everything that is stored. The first one gives the network the
// id by which it is told from others of its name, and stores whether it is to have keys: with the same write, so that one
// that crashed before it made the key is not taken for an open network.
func (s *Store) Begin(ctx context.Context, trust string) (State, error) {
	for _, prepare := range []func(context.Context) error{s.alone, s.settleWrites, s.upgrade} {
		if err := prepare(ctx); err != nil {
			return State{}, err
		}
	}
	state, err := s.Load(ctx)
	if err != nil {
		return state, err
	}
	changes := []Change{{"epoch", state.Epoch + 1}}
	if state.Epoch == 0 && trust != "" {
		state.Trust = trust
		changes = append(changes, PutTrust(trust))
	}
	state.Epoch++
	if state.ID == "" {
		state.ID = newID()
		changes = append(changes, Change{"id", state.ID})
	}
	return state, s.Commit(ctx, changes...)
}

// settleWrites waits for the end of writes that this process gave up. Where others may write, those of a term that is
// over are refused by its fence.
func (s *Store) settleWrites(ctx context.Context) error {
	if s.Elected() {
		return nil
	}
	return s.Probe(ctx)
}

func newID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// ErrOtherNetwork says that the store is another network's.
var ErrOtherNetwork = errors.New("the store is another network's")

// alone refuses an embedded store that holds another network: it belongs to one, and the controller would begin with
// an empty network where there is a full one.
func (s *Store) alone(ctx context.Context) error {
	if len(s.cfg.Endpoints) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	all, err := s.etcd().Get(ctx, everything, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("store: read %s: %w", s, err)
	}
	for _, kv := range all.Kvs {
		if !strings.HasPrefix(string(kv.Key), s.prefix) {
			other, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), everything), "/")
			return fmt.Errorf("store: %w: %s holds the network %s, and this controller is told to serve %s: start it with --network %s, or give it another --data", ErrOtherNetwork, s, other, s.cfg.Network, other)
		}
	}
	return nil
}

// Load returns everything that is stored, from one revision. Begin must have brought it into this version's form.
func (s *Store) Load(ctx context.Context) (State, error) {
	var state State
	records, err := s.records(ctx)
	if err == nil {
		err = s.check(records, versions.Schema())
	}
	if err != nil {
		return state, err
	}
	if records, err = settled(records); err != nil {
		return state, err
	}
	for _, key := range slices.Sorted(maps.Keys(records)) {
		if err := state.read(key, records[key]); err != nil {
			return state, err
		}
	}
	return state, nil
}

// records are all, from one revision, as they are stored.
func (s *Store) records(ctx context.Context) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	answer, err := s.etcd().Get(ctx, s.prefix, clientv3.WithPrefix())
	if len(s.cfg.Endpoints) > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("store: %w at %s: is it running, and is --etcd right?", ErrAway, s)
	}
	if err != nil {
		return nil, fmt.Errorf("store: read %s: %w", s, err)
	}
	records := make(map[string][]byte, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		records[strings.TrimPrefix(string(kv.Key), s.prefix)] = kv.Value
	}
	return records, nil
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

// revive starts an etcd anew that gave up, where nobody writes who would notice.
func (s *Store) revive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	if why := s.server.broken.Load(); why != nil {
		return s.restart(*why)
	}
	if s.server.out() {
		return fmt.Errorf("store: %w: to come back, move %s away and start with --join", ErrOut, filepath.Join(s.cfg.Dir, "etcd"))
	}
	return nil
}

// ended is closed when the etcd of now stops, whoever stops it; nil, which never is, where etcd is elsewhere.
func (s *Store) ended() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	return s.server.ended
}

// onEnd calls f when the etcd of now stops, until stop is called.
func (s *Store) onEnd(f func()) (stop func()) {
	ended, quit := s.ended(), make(chan struct{})
	go func() { // ends with stop
		select {
		case <-ended:
			f()
		case <-quit:
		}
	}()
	return func() { close(quit) }
}

// restart replaces an etcd that gave up, once there is room again.
func (s *Store) restart(why string) error {
	if err := room(s.cfg.Dir); err != nil {
		return err
	}
	if !s.server.close() {
		return fmt.Errorf("store: etcd gave up (%s) and does not stop: restart the controller", why)
	}
	return s.start(context.Background())
}

// String says where the state is.
func (s *Store) String() string {
	if len(s.cfg.Endpoints) == 0 {
		return s.cfg.Dir
	}
	return strings.Join(s.cfg.Endpoints, ", ")
}
