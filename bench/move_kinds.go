package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/bench/checked"
)

// Pause lets streams run; it returns early when the bench ends.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// soft has both links for a while, moves the flows by order, and takes the first link away.
func (b *moveBench) soft(ctx context.Context) error {
	var stalls, timeouts, again, quiet []float64
	lost := int64(0)
	for i := range b.size.Runs {
		host := []string{moveClient, moveServer}[i%2]
		here, there := b.sides(host)
		if err := b.Act(ctx, "heal %s %s", host, there); err != nil {
			return err
		}
		if err := b.AwaitAttached(ctx, host, there); err != nil {
			return err
		}
		if err := Pause(ctx, between); err != nil {
			return err
		}
		before, asks, err := b.count(ctx)
		if err != nil {
			return err
		}
		start := agent.Now()
		if failed, err := b.Shift(ctx, host, here, there); err != nil || failed > 0 {
			return errors.Join(err, fmt.Errorf("%d flows of %s cannot move", failed, host))
		}
		if err := Pause(ctx, between); err != nil {
			return err
		}
		if err := b.Act(ctx, "unplug %s %s", host, here); err != nil {
			return err
		}
		b.on[host] = 1 - b.on[host]
		if err := Pause(ctx, between); err != nil {
			return err
		}
		end := agent.Now()
		after, asked, err := b.count(ctx)
		if err != nil {
			return err
		}
		timeouts, again = append(timeouts, after.timeouts-before.timeouts), append(again, after.segments-before.segments)
		lost += int64(asked) - int64(asks)
		for _, flow := range []int{flowUp, flowDown} {
			one, err := b.stood(flow, start, end)
			if err != nil {
				return err
			}
			usual, err := b.stood(flow, start-(end-start), start)
			if err != nil {
				return err
			}
			stalls, quiet = append(stalls, one), append(quiet, usual)
		}
	}
	b.rep.Rows = append(b.rep.Rows,
		NewRow("make before break: standstill, p50", "ms", "", fmt.Sprintf("nothing moves: %s ms", Short(Quantile(quiet, 0.5))), stalls),
		QuantileRow("make before break: standstill, p99", "ms", "<= 20", fmt.Sprintf("nothing moves: %s ms", Short(Quantile(quiet, 0.99))), stalls, 0.99),
		QuantileRow("make before break: retransmission timeouts in a move, max", "", b.unlessLossy("= 0"), "kernel's counters, both hosts", timeouts, 1),
		QuantileRow("make before break: segments sent again in a move, max", "", "", "", again, 1),
		QuantileRow("make before break: datagrams without answer, of all moves", "", b.unlessLossy("= 0"), "", []float64{float64(lost)}, 1))
	return nil
}

// unlessLossy is no aim where the path itself loses packets.
func (b *moveBench) unlessLossy(aim string) string {
	if b.size.Loss {
		return ""
	}
	return aim
}

// count reads the kernels' counters and how many datagrams were not answered: the least of several looks, since
// some may overtake others.
func (b *moveBench) count(ctx context.Context) (sum tcpCounters, lost uint64, err error) {
	for _, p := range []*Program{b.server, b.programs[0]} {
		c, err := countersOf(p.cmd.Process.Pid)
		if err != nil {
			return sum, 0, err
		}
		sum.timeouts, sum.segments = sum.timeouts+c.timeouts, sum.segments+c.segments
	}
	lost = math.MaxUint64
	for range looks {
		e, err := b.look(flowAsks)
		if err != nil {
			return sum, 0, err
		}
		lost = min(lost, e.Lost)
		if err := Pause(ctx, checked.ReportEvery); err != nil {
			return sum, 0, err
		}
	}
	return sum, lost, nil
}

const looks = 4

// hard takes the link away and gives another one, after a break.
func (b *moveBench) hard(ctx context.Context) error {
	var mover, other, asks, alone []float64
	for i := range b.size.Runs {
		host := []string{moveClient, moveServer}[i%2]
		gone := moveBreaks[i/2%len(moveBreaks)]
		if err := b.unplug(ctx, host, gone); err != nil {
			return err
		}
		at, err := b.plugIn(ctx, host)
		if err != nil {
			return err
		}
		ms := map[int]float64{}
		for _, flow := range []int{flowUp, flowDown, flowAsks} {
			if ms[flow], err = b.firstAfter(ctx, flow, at); err != nil {
				return fmt.Errorf("%s moved after %v: %w", host, gone, err)
			}
		}
		up, down := flowUp, flowDown
		if host == moveServer {
			up, down = down, up
		}
		mover, other, asks = append(mover, ms[up]), append(other, ms[down]), append(asks, ms[flowAsks])
		if err := b.plain.follow(ctx); err != nil {
			return err
		}
		if err := Pause(ctx, between); err != nil {
			return err
		}
		if alone, err = b.plain.stall(ctx, gone, alone); err != nil {
			return err
		}
	}
	all := append(append([]float64{}, mover...), other...)
	trip := 2 * b.size.Delay
	b.rep.Rows = append(b.rep.Rows,
		NewRow("hard break: link up to first new byte, p50", "ms", fmt.Sprintf("<= %d", (15*time.Millisecond+trip).Milliseconds()), peerAlone(alone, 0.5), all),
		QuantileRow("hard break: link up to first new byte, p99", "ms", "<= 60", peerAlone(alone, 0.99), all, 0.99),
		NewRow("hard break: of those, the host that moved sends, p50", "ms", "", "", mover),
		NewRow("hard break: of those, the other host sends, p50", "ms", "", "", other),
		NewRow("hard break: first datagram answered, p50", "ms", "", "", asks),
		QuantileRow("hard break: first datagram answered, p99", "ms", "", "", asks, 0.99))
	return nil
}

// peerAlone is what plain TCP took for the same.
func peerAlone(samples []float64, q float64) string {
	if len(samples) == 0 {
		return ""
	}
	return fmt.Sprintf("Linux, /128 routed anew: %s ms (n %d)", Short(Quantile(samples, q)), len(samples))
}

func (b *moveBench) unplug(ctx context.Context, host string, gone time.Duration) error {
	here, _ := b.sides(host)
	if err := b.Act(ctx, "unplug %s %s", host, here); err != nil {
		return err
	}
	return Pause(ctx, gone)
}

// plugIn gives a host its other link and returns when both its ends were up.
func (b *moveBench) plugIn(ctx context.Context, host string) (int64, error) {
	_, there := b.sides(host)
	err := b.Act(ctx, "heal %s %s", host, there)
	b.on[host] = 1 - b.on[host]
	return agent.Now(), err
}

// bothApart is how far apart, at most, the two ends of a flow leave and come back.
const bothApart = 10 * time.Millisecond

// both moves the two ends at once.
func (b *moveBench) both(ctx context.Context) error {
	var streams, asks []float64
	for i := range b.size.Runs {
		apart := bothApart * time.Duration(i%4) / 4
		if err := b.unplug(ctx, moveClient, apart); err != nil {
			return err
		}
		if err := b.unplug(ctx, moveServer, 50*time.Millisecond-apart); err != nil {
			return err
		}
		if _, err := b.plugIn(ctx, moveClient); err != nil {
			return err
		}
		if err := Pause(ctx, apart/2); err != nil {
			return err
		}
		at, err := b.plugIn(ctx, moveServer)
		if err != nil {
			return err
		}
		for _, flow := range []int{flowUp, flowDown, flowAsks} {
			ms, err := b.firstAfter(ctx, flow, at)
			if err != nil {
				return fmt.Errorf("both ends moved: %w", err)
			}
			if flow == flowAsks {
				asks = append(asks, ms)
			} else {
				streams = append(streams, ms)
			}
		}
		if err := Pause(ctx, between); err != nil {
			return err
		}
	}
	b.rep.Rows = append(b.rep.Rows,
		NewRow(fmt.Sprintf("both ends move within %v: last link up to first new byte, p50", bothApart), "ms", "", "", streams),
		QuantileRow(fmt.Sprintf("both ends move within %v: last link up to first new byte, p99", bothApart), "ms", "<= 100", "", streams, 0.99),
		QuantileRow("both ends move: first datagram answered, p99", "ms", "", "", asks, 0.99))
	return nil
}
