package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"scaffold.dev/scaffold/emu"
)

// The links that are not veth pairs are the engine's, one process of the lab that lives in its cgroup
// and listens on a Unix socket. Its files are those of the node mgmt.
const engineName = "engine"

// engineTime bounds how long the engine may take from its start until its interfaces are there.
const engineTime = 20 * time.Second

func (l *Lab) enginePath(ext string) string {
	return filepath.Join(l.place.node(managementNode), engineName+ext)
}

// checkEngine refuses routers inside the engine, which moves frames between interfaces only.
func (l *Lab) checkEngine() error {
	for _, n := range l.File.Nodes {
		if n.Kind.engine() {
			return fmt.Errorf("%s:%d: node %q of kind %s: this version checks and plans such routers, and does not run them yet", l.File.Path, n.Line, n.Name, n.Kind)
		}
	}
	return nil
}

// engineConfig is what the engine has to make; nil if there is nothing.
func (l *Lab) engineConfig() *emu.Config {
	cfg := &emu.Config{}
	for _, c := range l.plan.Cable {
		if c.Emulated == nil {
			continue
		}
		link := emu.LinkConfig{Params: *c.Emulated}
		for i, n := range c.Nodes {
			link.Ends[i] = emu.End{Netns: netnsPath(n.Netns), Dev: c.Ports[i].Dev, MTU: c.MTU}
		}
		cfg.Links = append(cfg.Links, link)
	}
	if cfg.Links == nil {
		return nil
	}
	return cfg
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
	text, err := json.MarshalIndent(cfg, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.enginePath(".json"), text, 0o644); err != nil {
		return err
	}
	if err := l.spawnEngine(); err != nil {
		return fmt.Errorf("start the link engine: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, engineTime)
	defer cancel()
	return poll(ctx, func() error {
		if err := l.exited(managementNode, engineName); err != nil {
			return &finalError{err}
		}
		_, err := l.Emulated()
		return err
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
	cmd := exec.Command(l.opt.Binary, "lab", engineName, l.enginePath(".json"), l.enginePath(".sock"))
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

// RunEngine is the engine's process: it emulates the links that the file config describes, answers on
// a Unix socket and ends with ctx.
func RunEngine(ctx context.Context, config, socket string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	var cfg emu.Config
	if err := json.Unmarshal(text, &cfg); err != nil {
		return fmt.Errorf("%s: %w", config, err)
	}
	cfg.Workers = max(1, runtime.NumCPU()-1)
	runtime.GOMAXPROCS(cfg.Workers + 3) // workers keep theirs; the rest is for the socket
	debug.SetGCPercent(-1)              // a collection would stop the workers
	debug.SetMemoryLimit(512 << 20)     // only to end a leak: frames are not in this memory
	engine, err := emu.Start(cfg)
	if err != nil {
		return err
	}
	defer engine.Close()
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	for {
		c, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		serveEngine(engine, c)
	}
}
