package chaos

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/bench"
)

// loads are what each client host runs: many small streams that come and go, a few fast ones, datagrams.
var loads = [][]string{
	{"--network", "tcp6", "--flows", "6", "--up", "20000", "--down", "20000", "--step", "10ms", "--life", "1s", "--life-max", "15s"},
	{"--network", "tcp6", "--flows", "2", "--up", "2000", "--down", "1000000", "--step", "2ms", "--life", "5s", "--life-max", "40s"},
	{"--network", "tcp6", "--flows", "2", "--up", "1000000", "--down", "2000", "--step", "2ms", "--life", "5s", "--life-max", "40s"},
	{"--network", "udp6", "--flows", "4", "--step", "10ms", "--life", "2s", "--life-max", "20s"},
}

// soloLoads are streams and datagrams to what one host serves alone.
var soloLoads = [][]string{
	{"--network", "tcp6", "--flows", "3", "--up", "50000", "--down", "50000", "--step", "10ms", "--life", "1s", "--life-max", "60s"},
	{"--network", "udp6", "--flows", "1", "--step", "10ms", "--life", "2s", "--life-max", "20s"},
}

// begin brings all programs up and waits until each flow has both its ends.
func (s *stage) begin(ctx context.Context, seed uint64) error {
	var err error
	if s.target, err = s.rig.Target(ctx, service); err != nil {
		return err
	}
	for _, h := range s.world.Servers {
		if err := s.serve(ctx, h); err != nil {
			return err
		}
	}
	if err := s.serveSolo(ctx); err != nil {
		return err
	}
	settled, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := s.settled(settled); err != nil {
		return err
	}
	flows := 0
	all := append(loads, soloLoads...)
	for i, c := range s.world.Clients() {
		for j, load := range all {
			base, to := uint64(i*len(all)+j+1)<<32, s.target
			if j >= len(loads) {
				to = s.solo
			}
			args := append([]string{"checked", "--to", to, "--gap", gap.String(), "--seed", fmt.Sprint(seed), "--base", fmt.Sprint(base)}, load...)
			p, err := s.ledger.Start(s.rig, c, args...)
			if err != nil {
				return err
			}
			s.clients = append(s.clients, p)
			flows++
		}
	}
	began, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	return s.ledger.Await(began, func() error {
		have := s.ledger.Flows(func(f *bench.Flow) bool { return f.Live() && (f.Proto == "udp" || f.Server() != nil) })
		if len(have) < flows {
			return fmt.Errorf("%d flows began in %v", len(have), settleTime)
		}
		return nil
	})
}

// serveSolo starts the server that is alone, on a host that can move.
func (s *stage) serveSolo(ctx context.Context) (err error) {
	if s.solo, err = s.rig.Target(ctx, soloService); err != nil {
		return err
	}
	_, err = s.ledger.Serve(ctx, s.rig, s.world.movers(s.world.Servers)[0], s.solo, gap)
	return err
}
