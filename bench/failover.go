package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// FailoverLab is the lab of the failover benchmark: two instances, and hosts that prove who they are.
const FailoverLab = `
name: failover
network: {trust: keys}
services:
  again: {failover: reset}
  on: {failover: continue}
nodes:
  ctl: controller
  r1: {kind: router, service: true}
  c1: host
  s1: host
  s2: host
links:
  - [c1, r1]
  - [s1, r1]
  - [s2, r1]
`

// FailoverSize says how often.
type FailoverSize struct{ Kills, Cuts int }

// Failovers measures how long a client is without a server when the one it has dies.
func Failovers(ctx context.Context, r *Rig, size FailoverSize) (rep Report, err error) {
	for _, part := range []func(context.Context, *Rig, FailoverSize, *Report) error{failReset, failContinue} {
		if err := part(ctx, r, size, &rep); err != nil {
			return rep, err
		}
	}
	rep.Notes = append(rep.Notes, "reset: a plain client that asks every 0.5 ms and connects again when it is told; continue: the client's connection stays, every byte checked",
		"a host that is cut off keeps its carrier: only silence tells")
	return rep, nil
}

// Both servers of the failover benchmark.
var failServers = []string{"s1", "s2"}

// failReset kills processes and cuts hosts off whose service says reset.
func failReset(ctx context.Context, r *Rig, size FailoverSize, rep *Report) error {
	to, err := serviceTarget(ctx, r, "again")
	if err != nil {
		return err
	}
	servers := map[string]*Server{}
	for _, n := range failServers {
		if servers[n], err = serve(r, n, to); err != nil {
			return err
		}
		defer func() { servers[n].Kill() }() //nolint:errcheck // the lab ends with the bench
	}
	if err := awaitServing(ctx, r, "again", 2*len(failServers)); err != nil {
		return err
	}
	c, err := startRetrying(r, "c1", to)
	if err != nil {
		return err
	}
	defer c.stop()
	var kills, cuts, told []float64
	for range size.Kills {
		at := c.on
		began := agent.Now()
		if err := servers[at].Kill(); err != nil {
			return err
		}
		next, err := c.next(ctx)
		if err != nil {
			return fmt.Errorf("the server on %s was killed: %w", at, err)
		}
		kills, told = append(kills, float64(next.Answered-began)/1e6), append(told, float64(next.Broke-began)/1e6)
		if servers[at], err = serve(r, at, to); err != nil {
			return err
		}
		if err := awaitServing(ctx, r, "again", 2*len(failServers)); err != nil {
			return err
		}
	}
	for range size.Cuts {
		at, began := c.on, agent.Now()
		if err := r.Act(ctx, "cut %s", at); err != nil {
			return err
		}
		next, err := c.next(ctx)
		if err != nil {
			return fmt.Errorf("%s was cut off: %w", at, err)
		}
		cuts = append(cuts, float64(next.Answered-began)/1e6)
		if err := comeBack(ctx, r, "again", at, 2*len(failServers)); err != nil {
			return err
		}
	}
	rep.Rows = append(rep.Rows,
		NewRow("process killed, reset: kill to answer from another, p50", "ms", "<= 5", "", kills),
		QuantileRow("process killed, reset: kill to answer from another, p99", "ms", "", "", kills, 0.99),
		NewRow("process killed, reset: kill to client told, p50", "ms", "", "", told),
		NewRow("host cut off, reset: cut to answer from another, p50", "ms", "<= 200", "", cuts),
		QuantileRow("host cut off, reset: cut to answer from another, p99", "ms", "", "", cuts, 0.99))
	return nil
}

// comeBack heals a host and waits until it serves again.
func comeBack(ctx context.Context, r *Rig, service, host string, serving int) error {
	if err := Pause(ctx, between); err != nil {
		return err
	}
	if err := r.Act(ctx, "heal %s", host); err != nil {
		return err
	}
	if err := awaitServing(ctx, r, service, serving); err != nil {
		return err
	}
	return Pause(ctx, between)
}

// A retrying is a retrying client.
type retrying struct {
	cmd *exec.Cmd
	c   chan agent.Retry
	on  string // instance that answers it
}

func startRetrying(r *Rig, node, to string) (*retrying, error) {
	cmd, err := AgentCommand("retry", "--to", to)
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.Start(node, cmd); err != nil {
		return nil, err
	}
	t := &retrying{cmd: cmd, c: make(chan agent.Retry, 64)}
	go func() { // ends with the client
		defer close(t.c)
		for dec := json.NewDecoder(out); ; {
			var one agent.Retry
			if dec.Decode(&one) != nil {
				return
			}
			t.c <- one
		}
	}()
	_, err = t.next(context.Background())
	return t, err
}

// next waits for the client's next beginning.
func (t *retrying) next(ctx context.Context) (agent.Retry, error) {
	select {
	case one := <-t.c:
		t.on = one.To
		return one, nil
	case <-ctx.Done():
		return agent.Retry{}, ctx.Err()
	case <-time.After(moveLimit):
		return agent.Retry{}, fmt.Errorf("its client found no other in %v", moveLimit)
	}
}

func (t *retrying) stop() {
	t.cmd.Process.Kill() // it may have ended
	t.cmd.Wait()         //nolint:errcheck // killed
}

// failContinue kills processes and cuts hosts off whose service says continue.
func failContinue(ctx context.Context, r *Rig, size FailoverSize, rep *Report) error {
	dir, err := os.MkdirTemp("", "scaffold-bench-record-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &continuing{Rig: r, ledger: NewLedger(), dir: dir, servers: map[string]*Program{}}
	if err := b.begin(ctx); err != nil {
		return err
	}
	var kills, cuts []float64
	for range size.Kills {
		at, err := b.server(ctx, "")
		if err != nil {
			return err
		}
		began := agent.Now()
		if err := b.servers[at].Kill(); err != nil {
			return err
		}
		ms, err := b.gap(ctx, at, began)
		if err != nil {
			return fmt.Errorf("the server on %s was killed: %w", at, err)
		}
		kills = append(kills, ms)
		if err := b.serve(ctx, at, len(failServers)); err != nil {
			return err
		}
	}
	for range size.Cuts {
		at, err := b.server(ctx, "")
		if err != nil {
			return err
		}
		began := agent.Now()
		if err := r.Act(ctx, "cut %s", at); err != nil {
			return err
		}
		ms, err := b.gap(ctx, at, began)
		if err != nil {
			return fmt.Errorf("%s was cut off: %w", at, err)
		}
		cuts = append(cuts, ms)
		if err := comeBack(ctx, r, "on", at, len(failServers)); err != nil {
			return err
		}
	}
	rep.Rows = append(rep.Rows,
		NewRow("process killed, continue: last byte of the old to first of the new, p50", "ms", "<= 8", "", kills),
		QuantileRow("process killed, continue: last byte of the old to first of the new, p99", "ms", "<= 40", "", kills, 0.99),
		NewRow("host cut off, continue: last byte of the old to first of the new, p50", "ms", "<= 200", "", cuts),
		QuantileRow("host cut off, continue: last byte of the old to first of the new, p99", "ms", "", "", cuts, 0.99))
	return b.finish()
}

// continuing is one stream that goes from server to server.
type continuing struct {
	*Rig
	ledger  *Ledger
	dir     string
	target  string
	servers map[string]*Program
	client  *Program
}

func (b *continuing) begin(ctx context.Context) (err error) {
	if b.target, err = serviceTarget(ctx, b.Rig, "on"); err != nil {
		return err
	}
	for i, n := range failServers {
		if err := b.serve(ctx, n, i+1); err != nil {
			return err
		}
	}
	b.client, err = b.ledger.Start(b.Rig, "c1", "checked", "--to", b.target, "--gap", moveGap.String(),
		"--step", moveStep.String(), "--base", "1", "--down", "2000000", "--up", "20000")
	return err
}

func (b *continuing) serve(ctx context.Context, node string, serving int) (err error) {
	if b.servers[node], err = b.ledger.Serve(ctx, b.Rig, node, fmt.Sprintf("on:%d", port), moveGap, "--record", b.dir); err != nil {
		return err
	}
	if err := awaitServing(ctx, b.Rig, "on", serving); err != nil {
		return err
	}
	return Pause(ctx, between)
}

// server waits until a server other than this one has the stream, and names it.
func (b *continuing) server(ctx context.Context, other string) (at string, err error) {
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	err = b.ledger.Await(ctx, func() error {
		for _, f := range b.ledger.Flows((*Flow).Live) {
			if s := f.Server(); s != nil && s.Node != other {
				at = s.Node
				return nil
			}
		}
		return errors.New("no other server has the stream")
	})
	return at, err
}

// gap is how long the client stood still when its server went, in ms.
func (b *continuing) gap(ctx context.Context, gone string, at int64) (ms float64, err error) {
	if _, err := b.server(ctx, gone); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	err = b.ledger.Await(ctx, func() error {
		for _, f := range b.ledger.Flows((*Flow).Live) {
			s, c := f.Server(), f.Client()
			if s == nil || c.Last <= s.Since {
				continue
			}
			for _, g := range c.Gaps {
				if g.To > at {
					ms = max(ms, g.Milliseconds())
				}
			}
			return nil
		}
		return errors.New("nothing has come from the new server")
	})
	return ms, err
}

func (b *continuing) finish() error {
	errs := []error{b.client.Finish(moveLimit)}
	for _, n := range b.ledger.Wrong() {
		errs = append(errs, fmt.Errorf("%s: %s", n.Node, n.Err))
	}
	for _, f := range b.ledger.Flows(func(*Flow) bool { return true }) {
		if c := f.Client(); c == nil || c.Err != "" || !c.Ended {
			errs = append(errs, fmt.Errorf("the stream did not end in peace: %+v", c))
		}
	}
	for _, s := range b.servers {
		errs = append(errs, s.Kill())
	}
	return errors.Join(errs...)
}
