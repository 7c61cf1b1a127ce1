package boost

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// policed is what y lets through of each TCP connection, in Mbit/s: 32 of them are two thirds of the path.
const policed = 10

// policerSearch is how long agents look for the number of connections before they are compared: three times twice as many, each
// with 160 round trips, and as long again for what they find too little at first.
const policerSearch = 50 * time.Second

// policer compares agents as they are by themselves with one connection of BBR, and with as many flows as agents may have
// connections, where the server's router drops what a connection sends beyond a rate.
func (b *rig) policer(ctx context.Context) (err error) {
	if err := b.loss(ctx, "0%"); err != nil {
		return err
	}
	// Before routing, so that the agent's connections have it and those that pass the agent. A train of segments is one packet
	// there, of 64 KiB at most.
	rules := fmt.Sprintf(`table inet policer {
		set flows { type inet_service . inet_service; flags dynamic; size 1000; }
		chain in {
			type filter hook prerouting priority 0;
			meta l4proto tcp update @flows { tcp sport . tcp dport limit rate over %d kbytes/second burst 128 kbytes } drop
		}
	}`, policed*1000/8)
	if out, err := b.lab.Output(ctx, "y", "nft", rules); err != nil {
		b.note("no policer: nft: %v: %s (apt install nftables)", err, strings.TrimSpace(string(out)))
		return ctx.Err()
	}
	defer func() {
		if _, fail := b.lab.Output(context.WithoutCancel(ctx), "y", "nft", "delete table inet policer"); err == nil {
			err = fail
		}
	}()
	if _, err := b.iperf(ctx, "cubic", iperfBoosted, 1, 0, policerSearch); err != nil {
		return err
	}
	ours, one, many := b.boosted(), b.raw("bbr", 1), b.raw("bbr", 32)
	if err := b.turns(ctx, "behind a policer", ours, one, many); err != nil {
		return err
	}
	name := fmt.Sprintf("boosted, %d Mbit/s for each connection: goodput, ", policed)
	b.add(judged(name+"of one BBR connection's", "ratio", "", rated(one), paired(ours.all, one.all, quotient)),
		judged(name+"of 32 BBR flows'", "ratio", "", rated(many), paired(ours.all, many.all, quotient)))
	return nil
}
