package emubench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"scaffold.dev/scaffold/bench/place"
	"scaffold.dev/scaffold/emu"
)

// oursKind is a chain inside the engine, which is a process of its own.
const oursKind = "ours"

// An Engine is that process.
type Engine struct {
	in   io.Writer
	out  *json.Decoder
	said *tail
}

// newOurChain makes a chain of n routers with these links; without routers one link joins the hosts.
func newOurChain(ctx context.Context, child Child, n int, mode Mode, links [2]emu.Params) (*Chain, error) {
	c := &Chain{Kind: oursKind, Routers: n}
	return c.made(c.makeOurs(ctx, child, mode, links))
}

func (c *Chain) makeOurs(ctx context.Context, child Child, mode Mode, links [2]emu.Params) (err error) {
	for _, p := range []**place.Place{&c.from, &c.to} {
		if *p, err = place.New(); err != nil {
			return err
		}
		c.later((*p).Close)
	}
	cfg := EngineConfig{Routers: c.Routers, Mode: mode, Links: links, Ends: [2]emu.End{
		{Netns: c.from.Path(), Dev: "right", MTU: mtu}, {Netns: c.to.Path(), Dev: "left", MTU: mtu}}}
	if err := c.startEngine(child, cfg); err != nil {
		return err
	}
	if err := c.from.IP(ctx, nil, told(0, c.Routers)...); err != nil {
		return err
	}
	if err := c.to.IP(ctx, nil, told(c.Routers+1, c.Routers)...); err != nil {
		return err
	}
	return c.ready(ctx)
}

// mtu of the interfaces, that of veth pairs.
const mtu = 1500

// A Child is how a program is run that calls RunEngine.
type Child []string

// startEngine returns when the engine's interfaces are there.
func (c *Chain) startEngine(child Child, cfg EngineConfig) error {
	cmd := exec.Command(child[0], child[1:]...)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1") // as in a lab: its signal would end waits early
	e := &Engine{said: &tail{}}
	cmd.Stderr = e.said
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.startHere(cmd); err != nil {
		return err
	}
	c.engine, e.in, e.out = e, in, json.NewDecoder(out)
	var ready string
	return e.ask(cfg, &ready)
}

// ask says one thing to the engine and hears another.
func (e *Engine) ask(question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	_, err = e.in.Write(append(text, '\n'))
	if err == nil {
		err = e.out.Decode(answer)
	}
	if err != nil {
		return fmt.Errorf("the engine does not answer: %w: %s", err, e.said)
	}
	return nil
}

// State is what the engine counts.
func (e *Engine) State() (s EngineState, err error) { return s, e.ask(nil, &s) }

// Set changes the first link, for the packets to come, and returns the state right after.
func (e *Engine) Set(p [2]emu.Params) (s EngineState, err error) { return s, e.ask(p, &s) }
