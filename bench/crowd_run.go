package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// A gathering is a crowd of flows on a node.
type gathering struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	flows int
}

// gather opens the flows and waits until each was answered once.
func gather(r *Rig, node, network, to string, flows int) (*gathering, error) {
	cmd, err := AgentCommand("crowd", "--network", network, "--to", to, "--flows", strconv.Itoa(flows))
	if err != nil {
		return nil, err
	}
	g := &gathering{cmd: cmd, flows: flows}
	if g.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	g.out = json.NewDecoder(out)
	if err := r.Start(node, cmd); err != nil {
		return nil, err
	}
	var first agent.CrowdReport
	if err := g.out.Decode(&first); err != nil {
		return nil, errors.Join(fmt.Errorf("%d flows from %s to %s: %w", flows, node, to, err), g.close())
	}
	return g, nil
}

// tell gives the crowd an order and returns its report.
func (g *gathering) tell(order string) (r agent.CrowdReport, err error) {
	if _, err = fmt.Fprintln(g.in, order); err == nil {
		err = g.out.Decode(&r)
	}
	return r, err
}

// until gives an order again and again until a report fits.
func (g *gathering) until(ctx context.Context, order string, limit time.Duration, fit func(agent.CrowdReport) bool) (agent.CrowdReport, error) {
	for deadline := time.Now().Add(limit); ; {
		r, err := g.tell(order)
		switch {
		case err != nil || fit(r):
			return r, err
		case time.Now().After(deadline):
			return r, fmt.Errorf("of %d flows, after %v: %+v", g.flows, limit, r)
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// close ends all flows with the program.
func (g *gathering) close() error {
	g.cmd.Process.Kill() // it may have ended
	g.cmd.Wait()         //nolint:errcheck // killed
	return nil
}
