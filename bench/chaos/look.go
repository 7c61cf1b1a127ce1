package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/agent"
)

// How long the network may take until all hosts and servers are in service again, and from then on how long
// a flow may take to go on. A busy machine takes its time to start a daemon.
const (
	settleTime = 30 * time.Second
	healTime   = 10 * time.Second
)

// A Look is what was seen after a batch.
type Look struct {
	Whole  int64     // when the last event was done
	Served int64     // when all hosts and servers were in service
	Healed []float64 // of each live stream or datagram flow: ms from then until something arrived, 0 where nothing was missing
	Stood  float64   // longest standstill of a flow since the batch began, ms
	Odd    []Odd
	slow   *bench.Flow // the one that took longest to go on
	took   float64     // how long, ms
}

// look waits until everything is in service and goes on.
func (s *stage) look(ctx context.Context, began int64) (l Look) {
	l.Whole = agent.Now()
	settle, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := s.settled(settle); err != nil {
		l.Odd = append(l.Odd, Odd{At: agent.Now(), What: err.Error()})
	}
	l.Served = agent.Now()
	missing := map[uint64]bool{}
	for _, f := range s.ledger.Flows(func(f *bench.Flow) bool { return f.Live() && f.Client().Since < l.Whole }) {
		missing[f.ID] = true
	}
	heal, cancel := context.WithTimeout(ctx, healTime)
	defer cancel()
	if err := s.ledger.Await(heal, func() error { return s.moving(missing, l.Whole) }); err != nil {
		l.Odd = append(l.Odd, s.stuck(missing, l.Whole)...)
	}
	for _, f := range s.ledger.Flows(func(f *bench.Flow) bool { return f.Client() != nil }) {
		l.measure(f, began)
	}
	return l
}

// measure notes a flow's standstills.
func (l *Look) measure(f *bench.Flow, began int64) {
	healed := 0.0
	defer func() {
		if healed > l.took {
			l.slow, l.took = f, healed
		}
	}()
	for _, e := range f.Ends {
		for _, g := range e.Gaps {
			if g.To < began {
				continue
			}
			l.Stood = max(l.Stood, g.Milliseconds())
			if g.From <= l.Whole && l.Whole < g.To {
				healed = max(healed, float64(g.To-l.Whole)/1e6)
			}
		}
	}
	if f.Client().Since < l.Whole {
		l.Healed = append(l.Healed, healed)
	}
}

// moving is an error until something has arrived at each end of each live flow since then; it takes those
// that are done off the list.
func (s *stage) moving(missing map[uint64]bool, since int64) error {
	for _, f := range s.ledger.Flows(func(f *bench.Flow) bool { return missing[f.ID] }) {
		if !f.Live() || goesOn(f, since) {
			delete(missing, f.ID)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%d flows stand still", len(missing))
}

// goesOn reports whether something arrived at both ends since then. A flow that has no server's end yet is
// one that its server has not accepted.
func goesOn(f *bench.Flow, since int64) bool {
	if f.Proto == "udp" {
		return f.Client().Last > since
	}
	s := f.Server()
	return s != nil && f.Client().Last > since && s.Last > since
}

// stuck says of each flow on the list what is missing.
func (s *stage) stuck(missing map[uint64]bool, since int64) (odd []Odd) {
	now := agent.Now()
	for _, f := range s.ledger.Flows(func(f *bench.Flow) bool { return missing[f.ID] }) {
		what := fmt.Sprintf("stands still %.1f s after the network is whole:", float64(now-since)/1e9)
		for node, e := range f.Ends {
			what += fmt.Sprintf(" %s got its last %.3f s ago;", node, float64(now-max(e.Last, e.Since))/1e9)
		}
		odd = append(odd, Odd{At: since, What: what, Flow: f})
	}
	return odd
}

// settled waits until the controller sees all hosts and servers in service again, and no daemon is missing.
func (s *stage) settled(ctx context.Context) error {
	for {
		err := s.inService(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%v after the network is whole: %w", settleTime, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *stage) inService(ctx context.Context) error {
	var errs []error
	for _, h := range s.world.Hosts {
		host, err := s.rig.Host(ctx, h)
		if err == nil && host.State != "up" {
			err = fmt.Errorf("host %s is %s", h, host.State)
		}
		if err == nil {
			err = s.rig.Joined(ctx, h)
		}
		errs = append(errs, err)
	}
	svc, err := s.rig.Service(ctx, service)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	serving := 0
	for _, i := range svc.Instances {
		if i.State == "serving" {
			serving++
		}
	}
	if want := 2 * len(s.world.Servers); serving != want { // TCP and UDP
		errs = append(errs, fmt.Errorf("service %s has %d serving instances, want %d: %v", service, serving, want, svc.Instances))
	}
	return errors.Join(errs...)
}
