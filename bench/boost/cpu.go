package boost

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/process"
)

// What is carried for each sample of CPU time: enough that a tick of 10 ms is a hundredth of it; and before it, once.
const (
	costBytes     = 2 << 30
	costBytesFast = 1 << 30 // where there is one run
	costWarm      = 64 << 20
)

// costs measures how many bytes agents carry with a second of a processor, beside relays: no loss, no long path, the same
// bytes in turns. A stream passes both agents, and one relay: what counts is one agent's share.
func (b *rig) costs(ctx context.Context) error {
	protection := ""
	agents := func(name, protect string) *contender {
		return &contender{name: name, run: func(ctx context.Context) (float64, error) {
			if protection != protect {
				if err := b.agents.RestartWith(ctx, "protect: "+protect+"\n"); err != nil {
					return 0, err
				}
				protection = protect
			}
			return b.cost(ctx, func() time.Duration { return b.agentsUsed() / 2 }, b.server(ownBoosted), ownBoosted)
		}}
	}
	plain, sealed := agents("plain", "auth"), agents("sealed", "seal")
	relays, stop := b.relays(ctx)
	defer stop()
	all := []*contender{plain}
	for _, r := range relays {
		r.run = func(ctx context.Context) (float64, error) {
			return b.cost(ctx, func() time.Duration { return process.TreeCPU(r.cmd.Process.Pid) }, r.at, ownPlain)
		}
		all = append(all, &r.contender)
	}
	if err := b.turns(ctx, "CPU", append(all, sealed)...); err != nil {
		return err
	}
	b.add(costRows(plain, sealed, relays)...)
	return b.agents.RestartWith(ctx, "")
}

// costRows compare agents with relays.
func costRows(plain, sealed *contender, relays []*relay) (rows []bench.Row) {
	for _, r := range relays {
		for _, ours := range []*contender{plain, sealed} {
			aim := r.aim
			if ours == sealed && r.plainOnly {
				aim = ""
			}
			peer := fmt.Sprintf("%s: %.3g Gbit/s per core", r.name, bench.Quantile(values(r.all), 0.5)*8/1e9)
			rows = append(rows, judged("boosted, "+ours.name+": bytes per agent CPU-second, of "+r.name+"'s", "ratio", aim, peer, paired(ours.all, r.all, quotient)))
		}
	}
	perCore := func(bytes float64) float64 { return bytes * 8 / 1e9 }
	return append(rows,
		judged("boosted, plain: per agent core", "Gbit/s", ">= 11", "", each(plain.all, perCore)),
		judged("boosted, sealed: per agent core", "Gbit/s", "", "", each(sealed.all, perCore)))
}

// cost carries bytes to a port of the server, who is reached there or by a relay, and returns how many of them were carried
// for a second of a processor.
func (b *rig) cost(ctx context.Context, used func() time.Duration, to netip.AddrPort, port uint16) (float64, error) {
	size := int64(costBytes)
	if b.opt.Quick {
		size = costBytesFast
	}
	if _, err := b.carry(ctx, to, port, costWarm); err != nil {
		return 0, err
	}
	before := used()
	if _, err := b.carry(ctx, to, port, size); err != nil {
		return 0, err
	}
	took := used() - before
	if took <= 0 {
		return 0, fmt.Errorf("no processor time was counted for %d bytes", size)
	}
	return float64(size) / took.Seconds(), nil
}
