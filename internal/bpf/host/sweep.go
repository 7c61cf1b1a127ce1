package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// A SweepResult says what Sweep found.
type SweepResult struct {
	Flows   int // that remain
	Removed int
}

// How long an idle flow is kept, docs/protocol.md §3.6.
const (
	endedIdle      = 60 * time.Second
	endedIdleHalf  = 10 * time.Second // the map is more than half full
	endedIdleTight = 2 * time.Second  // more than three quarters
	datagramIdle   = 300 * time.Second
	connectingIdle = 150 * time.Second // the last SYN of the kernel's six has long been given up
	halfClosedIdle = time.Hour         // one FIN: the other end may still be sending
)

// Sweep removes the flows that have ended or that nobody uses. Call it every few seconds. A client's datagram
// flow lives with its socket: live tells by the cookie whether it exists; nil where nobody knows.
func (e *Edge) Sweep(live func(cookie uint64) bool) (SweepResult, error) {
	now := monotonic()
	count, err := e.Count()
	if err != nil {
		return SweepResult{}, err
	}
	limits := limitsAt(count, int(e.cfg.MaxFlows))
	var ids []uint64
	var keys []edgeFlowKey
	err = scan(e.maps.IngressFlows, func(id uint64, v *edgeIngressFlow) bool {
		if e.over(now, limits, v, live) {
			ids, keys = append(ids, id), append(keys, v.Key)
		}
		return true
	})
	if err != nil {
		return SweepResult{}, err
	}
	if err := e.remove(ids, keys); err != nil {
		return SweepResult{}, err
	}
	return SweepResult{Flows: count - len(ids), Removed: len(ids)}, nil
}

// over reports whether a flow has idled for too long.
func (e *Edge) over(now uint64, l limits, v *edgeIngressFlow, live func(uint64) bool) bool {
	idle := l.of(v)
	if idle == 0 || age(now, v.Seen) <= min(idle, l.ended) {
		return false
	}
	var out edgeEgressFlow
	if e.maps.EgressFlows.Lookup(&v.Key, &out) != nil {
		return age(now, v.Seen) > idle
	}
	if out.Owner != 0 && live != nil {
		if live(out.Owner) {
			return false
		}
		idle = l.ended
	}
	return age(now, max(v.Seen, out.Seen)) > idle
}

// limits is how long flows may idle, given how full the map is.
type limits struct{ ended, datagram time.Duration }

func limitsAt(count, capacity int) limits {
	switch {
	case 4*count > 3*capacity:
		return limits{endedIdleTight, datagramIdle / 10}
	case 2*count > capacity:
		return limits{endedIdleHalf, datagramIdle / 3}
	}
	return limits{endedIdle, datagramIdle}
}

// of is the flow's own limit, 0 for none: a TCP flow lives as long as its sockets.
func (l limits) of(v *edgeIngressFlow) time.Duration {
	switch {
	case v.Key.Proto != uint8(sid.TCP):
		return l.datagram
	case ended(v.End):
		return l.ended
	case v.End != 0:
		return halfClosedIdle
	case State(v.State) == Connecting:
		return connectingIdle
	}
	return 0
}

// remove deletes flows from both maps. An egress entry goes first: a packet that leaves in between is counted,
// one that arrives finds its socketID still.
func (e *Edge) remove(ids []uint64, keys []edgeFlowKey) error {
	if len(ids) == 0 {
		return nil
	}
	for i, key := range keys {
		var out edgeEgressFlow
		if e.maps.EgressFlows.Lookup(&key, &out) != nil || out.Socket != half(network(ids[i])) {
			continue // the tuple has come back as another flow
		}
		if err := e.maps.EgressFlows.Delete(&key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("host edge: remove flow: %w", err)
		}
	}
	for start := 0; start < len(ids); {
		n, err := e.maps.IngressFlows.BatchDelete(ids[start:], nil)
		start += n
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			start++ // gone already
		} else if err != nil {
			return fmt.Errorf("host edge: remove flows: %w", err)
		}
	}
	return nil
}

func age(now, seen uint64) time.Duration {
	if seen > now {
		return 0
	}
	return time.Duration(now - seen)
}

// monotonic is the clock of bpf_ktime_get_ns.
func monotonic() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the clock exists on every Linux
	}
	return uint64(ts.Nano())
}
