package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// walSegment is how much disk etcd takes in advance for its log; its own choice of 64 MB suits
// databases that grow, ours stays small, and a laboratory runs many.
const walSegment = 4 << 20

// startTimeout is how long an embedded etcd may take until it can be written to.
const startTimeout = 30 * time.Second

// startSlow is when somebody is told that it takes long.
const startSlow = 2 * time.Second

// startLook is how often one that starts is looked at: it may have given up without a word to us.
const startLook = 100 * time.Millisecond

// An etcd that is alone waits for its own election at each start, which nobody can contest: milliseconds.
const (
	aloneTick     = 25
	aloneElection = 5 * aloneTick // the fewest ticks that etcd takes
)

// maxLearners is how many members may join at a time.
const maxLearners = 4

// How long we wait for one that stops. It gives calls under way 5 s and two elections, and the other members' connections
// a second; a busy machine takes all of that. A broken one may never stop.
const (
	closeTimeout  = 15 * time.Second
	brokenTimeout = 5 * time.Second
)

var setSegment = sync.OnceFunc(func() { wal.SegmentSizeBytes = walSegment })

// embedded is an etcd inside this process, alone or a member of a cluster. It listens for other members at most: we
// speak to it by function calls.
type embedded struct {
	server *embed.Etcd
	client *clientv3.Client
	broken *atomic.Pointer[string] // what etcd said before it gave up
	ended  chan struct{}           // closed when it stops, or gave up
	quit   sync.Once
}

func openEmbedded(ctx context.Context, dir string, store Config) (*embedded, error) {
	cluster, log := store.Cluster, store.Log
	setSegment()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	broken, ended := new(atomic.Pointer[string]), make(chan struct{})
	e := &embedded{broken: broken, ended: ended}
	cfg, err := configure(dir, cluster, logger(log, broken))
	if err != nil {
		return nil, err
	}
	if store.copies > 0 {
		cfg.SnapshotCount = store.copies
	}
	server, err := launch(ctx, cfg, broken)
	if err != nil && cluster != nil && errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("store: listen for the other controllers at %s: the port is taken", cluster.Own())
	}
	if err != nil {
		return nil, fmt.Errorf("store: start etcd in %s: %w (if its files are damaged, put a backup in the place of %s, or move it away to begin with an empty network)", dir, err, filepath.Join(dir, "etcd"))
	}
	e.server, e.client = server, v3client.New(server.Server)
	e.client.KV, e.client.Cluster = rereadKV{e.client.KV}, rereadCluster{e.client.Cluster}
	go e.watch()
	if cluster != nil {
		return e, nil // it is ready when enough of the others are there
	}
	defer time.AfterFunc(startSlow, func() {
		log.Warn("the state is slow to come up: a slow disk, or files that etcd cannot make sense of", "dir", dir, "given_up_after", startTimeout)
	}).Stop()
	select {
	case <-server.Server.ReadyNotify():
		return e, nil
	case <-server.Server.StopNotify():
		err = fmt.Errorf("store: etcd in %s stopped while it started", dir)
	case <-time.After(startTimeout):
		err = fmt.Errorf("store: etcd in %s is not ready after %v", dir, startTimeout)
	case <-ctx.Done():
		err = fmt.Errorf("store: start etcd in %s: %w", dir, ctx.Err())
	}
	e.close()
	return nil, err
}

// watch notes the end of etcd. One that gave up does not say so otherwise.
func (e *embedded) watch() {
	look := time.NewTicker(startLook)
	defer look.Stop()
	for {
		select {
		case <-e.server.Server.StopNotify():
			e.end()
		case <-look.C:
			if e.broken.Load() != nil {
				e.end()
			}
		case <-e.ended:
			return
		}
	}
}

func (e *embedded) end() { e.quit.Do(func() { close(e.ended) }) }

// out reports whether etcd stopped by itself and unbroken: the others took it out.
func (e *embedded) out() bool {
	select {
	case <-e.server.Server.StopNotify():
		return e.broken.Load() == nil
	default:
		return false
	}
}

// launch starts etcd in goroutines of its own: on a damaged directory etcd panics, or logs an error
// that is to end the process, which here ends the goroutine, and another one may wait for it for ever.
func launch(ctx context.Context, cfg *embed.Config, broken *atomic.Pointer[string]) (*embed.Etcd, error) {
	type result struct {
		server *embed.Etcd
		err    error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: errors.New("it ended while it started")}
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("its log or its database cannot be read: %v", p)
			}
			if why := broken.Load(); why != nil {
				r.err = errors.New(*why)
			}
			done <- r
		}()
		r.server, r.err = embed.StartEtcd(cfg)
	}()
	look := time.NewTicker(startLook)
	defer look.Stop()
	for {
		select {
		case r := <-done:
			return r.server, r.err
		case <-look.C:
			if why := broken.Load(); why != nil {
				return nil, errors.New(*why)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func configure(dir string, cluster *Cluster, log *zap.Logger) (*embed.Config, error) {
	cfg := embed.NewConfig()
	cfg.Name = "scaffold"
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.Dir = filepath.Join(dir, "etcd")
	cfg.ListenPeerUrls, cfg.ListenClientUrls = nil, nil
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	cfg.MaxTxnOps = embeddedOps
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = "revision", "1000"
	if cluster == nil {
		cfg.TickMs, cfg.ElectionMs = aloneTick, aloneElection
		return cfg, nil
	}
	return cfg, cluster.configure(cfg)
}

// configure makes etcd one of several. An etcd that has run before knows the others and ignores what is said here.
func (c *Cluster) configure(cfg *embed.Config) error {
	own, err := url.Parse(c.Own())
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	cfg.Name, cfg.MaxLearners = c.Name, maxLearners
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*own}, []url.URL{*own}
	if ip, err := netip.ParseAddr(own.Hostname()); err != nil || ip.Zone() != "" {
		cfg.ListenPeerUrls = []url.URL{{Scheme: own.Scheme, Host: net.JoinHostPort("::", own.Port())}} // a name: wherever it leads
	}
	cfg.PeerTLSInfo.CertFile, cfg.PeerTLSInfo.KeyFile, cfg.PeerTLSInfo.TrustedCAFile = c.CertFile, c.KeyFile, c.CAFile
	cfg.PeerTLSInfo.ClientCertAuth = c.CAFile != ""
	members := c.Members
	if !wal.Exist(filepath.Join(cfg.Dir, "member", "wal")) && c.Join != nil {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		if members, err = c.Join(ctx); err != nil {
			return fmt.Errorf("store: join the cluster: %w", err)
		}
		cfg.ClusterState = embed.ClusterStateFlagExisting
	}
	if cfg.InitialCluster = initial(members); cfg.InitialCluster == "" {
		cfg.InitialCluster = initial([]Peer{{Name: c.Name, URL: c.Own()}})
	}
	return nil
}

func (e *embedded) close() bool {
	e.end()
	done := make(chan struct{})
	go func() { // ends with etcd; one that is broken may keep it
		defer close(done)
		_ = e.client.Close()
		e.server.Close()
	}()
	limit := closeTimeout
	if e.broken.Load() != nil {
		limit = brokenTimeout
	}
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// logger passes etcd's warnings on. Where etcd would end the process (it does when it cannot write
// its log), only the goroutine ends, and the store knows that it is broken.
func logger(log *slog.Logger, broken *atomic.Pointer[string]) *zap.Logger {
	core := &slogCore{log: log.With("part", "etcd"), broken: broken}
	return zap.New(core, zap.WithFatalHook(zapcore.WriteThenGoexit), zap.WithPanicHook(zapcore.WriteThenGoexit))
}

type slogCore struct {
	log    *slog.Logger
	broken *atomic.Pointer[string]
	fields []zapcore.Field
}

func (c *slogCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	d := *c
	d.fields = append(append([]zapcore.Field(nil), c.fields...), fields...)
	return &d
}

func (c *slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range append(append([]zapcore.Field(nil), c.fields...), fields...) {
		f.AddTo(values)
	}
	var args []any
	for k, v := range values.Fields {
		args = append(args, k, v)
	}
	switch {
	case e.Level >= zapcore.DPanicLevel:
		why := fmt.Sprint(e.Message, ": ", values.Fields["error"])
		c.broken.CompareAndSwap(nil, &why)
		c.log.Error(e.Message, args...)
	case e.Level >= zapcore.ErrorLevel:
		c.log.Warn(e.Message, args...)
	default:
		c.log.Debug(e.Message, args...)
	}
	return nil
}

func (c *slogCore) Sync() error { return nil }
