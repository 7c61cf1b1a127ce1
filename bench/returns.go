package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// Returns measures what becomes of new connections while nobody can tell that their instance is dead: of two servers the
// one with a thousand times the weight is killed under a rate of connections, first without a controller, then without
// its own daemon either. Each first packet then goes to the dead one, is returned, and meets the other.
func Returns(ctx context.Context, r *Rig, service string, rate int, d time.Duration) (Report, error) {
	var rep Report
	to, err := serviceTarget(ctx, r, service)
	if err != nil {
		return rep, err
	}
	other, err := serve(r, "s2", to)
	if err != nil {
		return rep, err
	}
	defer other.Kill() //nolint:errcheck // the lab ends with the bench
	for host, weight := range map[string]int{"s1": 1000, "s2": 1} {
		if err := r.Act(ctx, "weight %s %s %d", service, host, weight); err != nil {
			return rep, err
		}
	}
	for _, c := range []struct {
		name string
		away []string
	}{
		{"no controller", []string{"ctl/controld"}},
		{"no controller, no daemon", []string{"ctl/controld", "s1/hostd"}},
	} {
		rows, note, err := killedUnseen(ctx, r, service, to, rate, d, c.away)
		if err != nil {
			return rep, fmt.Errorf("%s: %w", c.name, err)
		}
		for _, row := range rows {
			row.Name = c.name + ": " + row.Name
			rep.Rows = append(rep.Rows, row)
		}
		rep.Notes = append(rep.Notes, c.name+": "+note)
	}
	rep.Notes = append(rep.Notes, "refused: connect() failed with no answer but a refusal; connections of the moment of the kill that break later are counted apart")
	return rep, nil
}

// killedUnseen kills the heavy server in the middle of a run, and runs once more with it dead.
func killedUnseen(ctx context.Context, r *Rig, service, to string, rate int, d time.Duration, away []string) (rows []Row, note string, err error) {
	heavy, err := serve(r, "s1", to)
	if err != nil {
		return nil, "", err
	}
	defer heavy.Kill() //nolint:errcheck // mostly killed already
	if err := awaitServing(ctx, r, service, 4); err != nil {
		return nil, "", err
	}
	for _, a := range away {
		if err := r.Act(ctx, "kill %s", a); err != nil {
			return nil, "", err
		}
	}
	defer func() {
		for _, a := range away {
			err = errors.Join(err, r.Act(context.WithoutCancel(ctx), "start %s", a))
		}
	}()
	alive, err := paced(ctx, r, to, rate, d, nil)
	if err != nil {
		return nil, "", err
	}
	during, err := paced(ctx, r, to, rate, d, heavy.Kill)
	if err != nil {
		return nil, "", err
	}
	dead, err := paced(ctx, r, to, rate, d, nil)
	if err != nil {
		return nil, "", err
	}
	refused := func(p agent.PacedResult) []float64 { return []float64{float64(p.Refused)} }
	rows = []Row{
		NewRow("refused in the run in which it is killed", "connections", "<= 0", "", refused(during)),
		NewRow("refused while it is dead", "connections", "<= 0", "", refused(dead)),
		NewRow("connect to answer, nothing returned, p50", "ms", "", "", alive.Took),
		NewRow("connect to answer, each first packet returned, p50", "ms", "", "", dead.Took),
		NewRow("connect to answer, each first packet returned", "ratio", "", "nothing returned", []float64{Quantile(dead.Took, 0.5) / Quantile(alive.Took, 0.5)}),
	}
	broke := during.Asked - during.Answered - during.Refused
	return rows, fmt.Sprintf("%d connections a second for %v; of %d in the run of the kill %d broke that were open at that moment, %d were refused", rate, d, during.Asked, broke, during.Refused), nil
}

// paced runs the paced client; in the middle of it happens what is given.
func paced(ctx context.Context, r *Rig, to string, rate int, d time.Duration, middle func() error) (p agent.PacedResult, err error) {
	cmd, err := AgentCommand("paced", "--to", to, "--rate", strconv.Itoa(rate), "--duration", d.String())
	if err != nil {
		return p, err
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := r.Start("c1", cmd); err != nil {
		return p, err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	if middle != nil {
		err = Pause(ctx, d/2)
		if err == nil {
			err = middle()
		}
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return p, errors.Join(ctx.Err(), err)
	}
	return p, json.Unmarshal(out.Bytes(), &p)
}
