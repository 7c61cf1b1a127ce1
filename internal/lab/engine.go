package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"scaffold.dev/scaffold/internal/emud"
)

// The links that are not veth pairs are the engine's, and so are emulated routers: one process of the lab that lives
// in its cgroup and listens on a Unix socket. Its files are those of the node mgmt.
const engineName = "engine"

// engineTime bounds how long the engine may take from its start until its interfaces are there, and routeTime how much
// longer for each pair of its routers: they all have routes to each other.
const (
	engineTime = 60 * time.Second
	routeTime  = 20 * time.Microsecond
)

func (l *Lab) enginePath(ext string) string {
	return filepath.Join(l.place.node(managementNode), engineName+ext)
}

// Engine is a client of the lab's engine; nil in a lab without one.
func (l *Lab) Engine() *emud.Client {
	if !l.plan.hasEngine() {
		return nil
	}
	return emud.Dial(l.enginePath(".sock"))
}

// hasEngine reports whether anything is emulated.
func (p *Plan) hasEngine() bool {
	for _, c := range p.Cable {
		if c.Emulated != nil {
			return true
		}
	}
	for _, n := range p.Nodes {
		if n.Kind.engine() {
			return true
		}
	}
	return false
}

// startEngine returns when the engine's interfaces are there.
func (l *Lab) startEngine(ctx context.Context) error {
	cfg := l.engineConfig()
	if cfg == nil {
		return nil
	}
	if err := os.MkdirAll(l.place.node(managementNode), 0o755); err != nil {
		return err
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.enginePath(".json"), text, 0o644); err != nil {
		return err
	}
	if err := l.spawnEngine(); err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	limit := engineTime + time.Duration(len(cfg.Routers)*len(cfg.Routers))*routeTime
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the engine was not ready in %v", limit))
	defer cancel()
	client := l.Engine()
	return poll(ctx, func() error {
		if err := l.exited(managementNode, engineName); err != nil {
			return &finalError{err}
		}
		return client.Ready(ctx)
	})
}

func (l *Lab) spawnEngine() error {
	log, err := os.OpenFile(l.enginePath(".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	c := l.cgroup(managementNode).child(engineName)
	if err := c.make(); err != nil {
		return err
	}
	dir, err := os.Open(string(c))
	if err != nil {
		return err
	}
	defer dir.Close()
	cmd := exec.Command(l.engineBinary(), "lab", engineName, l.enginePath(".json"), l.enginePath(".sock"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1") // its signal would end waits early
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { // ends with the process
		cmd.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.exits[managementNode+"/"+engineName] = cmd.ProcessState.String()
	}()
	return nil
}

// engineBinary is the lab's own, or one with programs of its user: relative to the lab file.
func (l *Lab) engineBinary() string {
	own := l.File.Network.Engine
	switch {
	case own == "":
		return l.opt.Binary
	case filepath.IsAbs(own):
		return own
	}
	return filepath.Join(filepath.Dir(l.File.Path), own)
}
