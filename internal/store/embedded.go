package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
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

// startLook is how often one that starts is looked at: it may have given up without a word to us.
const startLook = 100 * time.Millisecond

// closeTimeout is how long we wait for one that stops; a broken one may never.
const closeTimeout = 5 * time.Second

var setSegment = sync.OnceFunc(func() { wal.SegmentSizeBytes = walSegment })

// embedded is an etcd of one member inside this process. It listens nowhere: we speak to it by
// function calls.
type embedded struct {
	server *embed.Etcd
	client *clientv3.Client
	broken *atomic.Pointer[string] // what etcd said before it gave up
}

func openEmbedded(dir string, log *slog.Logger) (*embedded, error) {
	setSegment()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	broken := new(atomic.Pointer[string])
	server, err := launch(configure(dir, logger(log, broken)), broken)
	if err != nil {
		return nil, fmt.Errorf("store: start etcd in %s: %w (if its files are damaged, put a backup in the place of %s, or move it away to begin with an empty network)", dir, err, filepath.Join(dir, "etcd"))
	}
	e := &embedded{server: server, client: v3client.New(server.Server), broken: broken}
	select {
	case <-server.Server.ReadyNotify():
		return e, nil
	case <-server.Server.StopNotify():
		err = fmt.Errorf("store: etcd in %s stopped while it started", dir)
	case <-time.After(startTimeout):
		err = fmt.Errorf("store: etcd in %s is not ready after %v", dir, startTimeout)
	}
	e.close()
	return nil, err
}

// launch starts etcd in goroutines of its own: on a damaged directory etcd panics, or logs an error
// that is to end the process, which here ends the goroutine, and another one may wait for it for ever.
func launch(cfg *embed.Config, broken *atomic.Pointer[string]) (*embed.Etcd, error) {
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
		}
	}
}

func configure(dir string, log *zap.Logger) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = "scaffold"
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.Dir = filepath.Join(dir, "etcd")
	cfg.ListenPeerUrls, cfg.ListenClientUrls = nil, nil
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = "revision", "1000"
	return cfg
}

func (e *embedded) close() bool {
	done := make(chan struct{})
	go func() { // ends with etcd; one that is broken may keep it
		defer close(done)
		_ = e.client.Close()
		e.server.Close()
	}()
	select {
	case <-done:
		return true
	case <-time.After(closeTimeout):
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
