package emud

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// spareProcs are the processors of the Go scheduler beyond those that shards keep: for the socket and the feeds.
const spareProcs = 3

// goMemory is how much more than it holds at the start the process may take before it collects, which stops shards:
// packets are not in this memory.
const goMemory = 512 << 20

// restMemory collects once, and then no more until a good part of memory has become waste.
func restMemory() {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(int64(m.Sys-m.HeapReleased) + goMemory)
}

// Run is the engine's process: it makes the network that the file config describes, answers on a Unix socket and
// ends with ctx, or when it is asked to.
func Run(ctx context.Context, programs Programs, config, socket string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	var cfg Config
	if err := json.Unmarshal(text, &cfg); err != nil {
		return fmt.Errorf("%s: %w", config, err)
	}
	cfg.Shards = cfg.shards()
	if err := raiseFiles(); err != nil {
		return err
	}
	runtime.GOMAXPROCS(cfg.Shards + spareProcs)
	e, err := newEngine(cfg, programs, logf)
	if err != nil {
		return err
	}
	defer e.close()
	restMemory()
	e.began = time.Now()
	e.since = e.began
	if err := e.net.Start(); err != nil {
		return err
	}
	return e.serve(ctx, socket)
}

func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
}

// raiseFiles lets the process open as many interfaces as the kernel allows it.
func raiseFiles() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	return nil
}

// shards is how many threads there are: those that routers are put on at least.
func (c *Config) shards() int {
	n := c.Shards
	if n == 0 {
		n = max(1, runtime.NumCPU()-1)
	}
	for _, r := range c.Routers {
		n = max(n, r.Core+1)
	}
	return n
}
