package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/bench/agent"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// SwitchSize is how much of each is measured.
type SwitchSize struct{ Changes, Joins, Restarts int }

// Switch measures what an OpenFlow switch under the controller takes: until a change is in its tables, until a host
// that joins is reached through it, and until it is as it should be when the controller was killed under load.
func Switch(ctx context.Context, r *Rig, service string, size SwitchSize) (rep Report, err error) {
	to, err := serviceTarget(ctx, r, service)
	if err != nil {
		return rep, err
	}
	for _, node := range []string{"s1", "s2"} {
		s, err := serve(r, node, to)
		if err != nil {
			return rep, err
		}
		defer s.Kill() //nolint:errcheck // the lab ends with the bench
	}
	if err := awaitServing(ctx, r, service, 2); err != nil {
		return rep, err
	}
	for _, part := range []func(context.Context, *Rig, string, SwitchSize, *Report) error{switchChanges, switchJoins} {
		if err := part(ctx, r, service, size, &rep); err != nil {
			return rep, err
		}
	}
	return rep, switchRestarts(ctx, r, to, size, &rep)
}

// switchChanges asks for weights; the answer comes once the switch has said that it has them (a barrier).
func switchChanges(ctx context.Context, r *Rig, service string, size SwitchSize, rep *Report) error {
	var took []float64
	for i := range size.Changes {
		began := time.Now()
		res, err := r.Client.SetWeight(ctx, connect.NewRequest(&apiv1.SetWeightRequest{Name: service, Host: "s1", Weight: uint32(1 + i%7)}))
		if err != nil {
			return fmt.Errorf("change a weight: %w", err)
		}
		if len(res.Msg.Pending) > 0 {
			return fmt.Errorf("change a weight: %v has not applied it", res.Msg.Pending)
		}
		took = append(took, float64(time.Since(began).Microseconds())/1e3)
	}
	rep.Rows = append(rep.Rows, NewRow("weight changed until the switch has it, p50", "ms", "<= 3", "", took),
		QuantileRow("weight changed until the switch has it, p99", "ms", "", "", took, 0.99))
	return nil
}

// switchRestarts kills the controller while requests go to and fro on connections that are bound.
func switchRestarts(ctx context.Context, r *Rig, to string, size SwitchSize, rep *Report) error {
	var took []float64
	var hurt, requests float64
	for range size.Restarts {
		const load = 4 * time.Second
		type outcome struct {
			agent.Result
			err error
		}
		done := make(chan outcome, 1)
		go func() { // ends with the load
			res, err := measure(ctx, r, "c1", "rr", "--network", "tcp6", "--to", to, "--duration", load.String())
			done <- outcome{res, err}
		}()
		if err := errors.Join(r.Act(ctx, "kill ctl/controld"), r.Act(ctx, "start ctl/controld")); err != nil {
			return err
		}
		ms, err := reconciled(ctx, r)
		if err != nil {
			return err
		}
		took = append(took, ms)
		o := <-done
		if o.err != nil {
			hurt++
			rep.Notes = append(rep.Notes, "a flow ended: "+o.err.Error())
		}
		hurt += float64(o.Errors)
		requests += float64(o.Ops)
	}
	rep.Rows = append(rep.Rows, QuantileRow("controller killed: switch back until its rules are read back equal, max", "ms", "<= 1000", "", took, 1),
		Row{Name: "controller killed: bound flows hurt", Value: hurt, Unit: "flows", Aim: "= 0", Met: hurt == 0, N: size.Restarts})
	rep.Notes = append(rep.Notes, fmt.Sprintf("%.0f requests were answered on connections that were there before the controller was killed", requests))
	return nil
}

// reconciled waits until the controller's history, which begins with it, tells that the switch is as it should be.
func reconciled(ctx context.Context, r *Rig) (ms float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		events, err := r.Events(ctx)
		for _, e := range events {
			if e.Kind == "switch.reconciled" {
				return strconv.ParseFloat(e.Attrs["ms"], 64)
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("the switch is not reconciled after 30 s (%w)", errors.Join(err, context.Cause(ctx)))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
