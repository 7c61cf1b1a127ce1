package boost

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/lab/agents"
)

// cutLab has two agents beside the server, each on a way of its own between two routers.
const cutLab = `
name: benchboost
nodes:
  c1: host
  x: {kind: plain}
  m: {kind: plain}
  y: {kind: plain}
  z: {kind: plain}
  r: {kind: plain}
  s1: host
links:
  - [c1, x]
  - {ends: [x, m], delay: 25ms, rate: 500Mbit, queue: 3125KB, seed: 1}
  - [m, y]
  - [m, z]
  - [y, r]
  - [z, r]
  - [r, s1]
`

// cuts are of an agent's machine, in a run.
const cuts = 2

// spareAgent has y and z beside the server, and what is between the hosts go by y.
func (b *rig) spareAgent(ctx context.Context) error {
	b.far = agents.Site{Agent: "y", Spare: "z", Host: "s1", By: "r"}
	return b.turnTo(ctx, "y")
}

// turnTo has what is between the hosts go by one of the agents beside the server, as a routing protocol does there.
func (b *rig) turnTo(ctx context.Context, agent string) error {
	by := b.lab.Plan().Node(agent).Own4.String()
	return errors.Join(b.route(ctx, "m", agents.Address(b.lab, "s1").Masked().String(), by),
		b.route(ctx, "r", agents.Address(b.lab, "c1").Masked().String(), by))
}

// cutOff measures for how long nothing arrives of a boosted connection when the machine of the agent beside its receiver is cut
// off, and the hosts' way turns to another agent there at once: for how long the agents take.
func (b *rig) cutOff(ctx context.Context) error {
	if err := b.link(ctx, "x->m loss "+lossOfMost); err != nil {
		return err
	}
	f, err := b.steady(ctx)
	if err != nil {
		return err
	}
	defer f.close()
	carries, spare := "y", "z"
	c := &contender{name: "boosted", run: func(ctx context.Context) (float64, error) {
		f.longest.Store(0)
		if err := b.act(ctx, "cut "+carries); err != nil {
			return 0, err
		}
		if err := errors.Join(b.turnTo(ctx, spare), bench.Pause(ctx, killedEach)); err != nil {
			return 0, err
		}
		return float64(f.longest.Load()) / 1e6, f.failed()
	}}
	for range b.runs() * cuts {
		if err := errors.Join(b.reaches(ctx, spare), bench.Pause(ctx, settle)); err != nil {
			return err
		}
		if err := b.once(ctx, "the machine of the server's agent is cut off", c); err != nil {
			return err
		}
		if err := b.act(ctx, "heal "+carries); err != nil {
			return err
		}
		carries, spare = spare, carries
	}
	b.add(judged("boosted: standstill when the machine of the agent beside the receiver is cut off", "ms", "<= 1000", "", c.all))
	return nil
}

// rejoins is how long agents may take to have connections again.
const rejoins = 30 * time.Second

// reaches waits until the client's agent has connections to another one.
func (b *rig) reaches(ctx context.Context, agent string) error {
	at := b.lab.Plan().Node(agent).Own4.String()
	for limit := time.Now().Add(rejoins); ; {
		out, err := b.lab.Output(ctx, "x", "ss", "-Htn", "state", "established", "dst", at)
		if n := strings.Count(string(out), "\n"); err != nil || n >= 5 { // four of data, and the control connection
			return err
		} else if time.Now().After(limit) {
			return fmt.Errorf("x has %d connections to agent %s; they say:\n%s%s", n, agent, b.agents.Log("x"), b.agents.Log(agent))
		}
		if err := bench.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
