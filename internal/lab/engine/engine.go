package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/poll"
	"scaffold.dev/scaffold/internal/lab/state"
)

// Name is that of the engine's process, which lives in the lab's cgroup; its files are those of the node mgmt.
const Name = "engine"

// engineTime bounds how long the engine may take from its start until its interfaces are there, and routeTime how much
// longer for each pair of its routers: they all have routes to each other.
const (
	engineTime = 60 * time.Second
	routeTime  = 20 * time.Microsecond
)

// Processes start the engine and know of its end.
type Processes interface {
	SpawnOutside(node, name string, cmd *exec.Cmd) error
	Exited(node, name string) error
}

// A Config is what an engine is made from.
type Config struct {
	Plan      *plan.Plan
	Dir       state.Dir
	Binary    string // the scaffold that it is part of, where the lab file names no other
	Processes Processes
}

// An Engine is what one lab has, or would have, of one: without anything that is emulated there is no process.
type Engine struct {
	plan  *plan.Plan
	dir   state.Dir
	own   string
	procs Processes
}

// New starts nothing.
func New(c Config) *Engine { return &Engine{c.Plan, c.Dir, c.Binary, c.Processes} }

func (e *Engine) path(ext string) string {
	return filepath.Join(e.dir.Node(file.ManagementNode), Name+ext)
}

// Client is a client of the engine; nil in a lab without one.
func (e *Engine) Client() *emud.Client {
	if !e.plan.HasEngine() {
		return nil
	}
	return emud.Dial(e.path(".sock"))
}

// Start returns when the engine's interfaces are there.
func (e *Engine) Start(ctx context.Context) error {
	cfg := configOf(e.plan, e.dir)
	if cfg == nil {
		return nil
	}
	if err := os.MkdirAll(e.dir.Node(file.ManagementNode), 0o755); err != nil {
		return err
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	if err := os.WriteFile(e.path(".json"), text, 0o644); err != nil {
		return err
	}
	if err := e.spawn(); err != nil {
		return err
	}
	limit := engineTime + time.Duration(len(cfg.Routers)*len(cfg.Routers))*routeTime
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the engine was not ready in %v", limit))
	defer cancel()
	client := e.Client()
	return poll.Until(ctx, func() error {
		if err := e.procs.Exited(file.ManagementNode, Name); err != nil {
			return poll.Final(err)
		}
		err := client.Ready(ctx)
		if errors.Is(err, emud.ErrVersion) {
			return poll.Final(err) // it will not learn the question
		}
		return err
	})
}

func (e *Engine) spawn() error {
	cmd := exec.Command(e.binary(), "lab", Name, e.path(".json"), e.path(".sock"))
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1") // its signal would end waits early
	return e.procs.SpawnOutside(file.ManagementNode, Name, cmd)
}

// binary is the lab's own, or one with programs of its user: relative to the lab file.
func (e *Engine) binary() string {
	named := e.plan.File.Network.Engine
	switch {
	case named == "":
		return e.own
	case filepath.IsAbs(named):
		return named
	}
	path := filepath.Join(filepath.Dir(e.plan.File.Path), named)
	if !strings.ContainsRune(path, filepath.Separator) {
		return "." + string(filepath.Separator) + path // Join took that away, and exec would look in PATH
	}
	return path
}
