package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/bpf/ktime"
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
	now := ktime.Now()
	e.sweeping.Lock()
	defer e.sweeping.Unlock()
	count := 0
	e.peers.begin()
	err := scan(e.maps.EgressFlows, func(key *edgeFlowKey, out *edgeEgressFlow) bool {
		e.peers.see(key, out.Role)
		count++
		return true
	})
	if err != nil {
		return SweepResult{}, err
	}
	e.peers.end()
	limits := limitsAt(count, int(e.cfg.MaxFlows))
	var keys []edgeFlowKey
	var flows []edgeEgressFlow
	err = scan(e.maps.EgressFlows, func(key *edgeFlowKey, out *edgeEgressFlow) bool {
		if e.over(now, limits, out, live) {
			keys, flows = append(keys, *key), append(flows, *out)
		}
		return true
	})
	if err != nil {
		return SweepResult{}, err
	}
	if err := e.remove(keys, flows); err != nil {
		return SweepResult{}, err
	}
	return SweepResult{Flows: count - len(keys), Removed: len(keys)}, errors.Join(e.overdue(now), e.seldom(now))
}

// over reports whether a flow has idled for too long. What arrives is looked at only where nothing was sent.
func (e *Edge) over(now uint64, l limits, out *edgeEgressFlow, live func(uint64) bool) bool {
	idle := l.of(out)
	if idle == 0 || age(now, out.Seen) <= min(idle, l.ended) {
		return false
	}
	if out.Owner != 0 && live != nil {
		if live(out.Owner) {
			return false
		}
		idle = l.ended
	}
	return age(now, out.Seen) > idle && age(now, e.heard(out)) > idle
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
func (l limits) of(out *edgeEgressFlow) time.Duration {
	switch {
	case out.Proto != uint8(sid.TCP):
		return l.datagram
	case ended(out.End), out.Watch&watchDrain != 0: // or its process died, and it went on elsewhere
		return l.ended
	case out.End != 0:
		return halfClosedIdle
	case State(out.State) == Connecting, State(out.State) == HalfOpen:
		return connectingIdle
	}
	return 0
}

// remove deletes flows with all their socketIDs. An egress entry goes first: a packet that leaves in between is
// counted, one that arrives finds its socketID still.
func (e *Edge) remove(keys []edgeFlowKey, flows []edgeEgressFlow) error {
	var ids []uint64
	for i := range keys {
		var out edgeEgressFlow
		if e.maps.EgressFlows.Lookup(&keys[i], &out) != nil || out.Birth != flows[i].Birth {
			continue // the tuple has come back as another flow
		}
		e.entries(&out, func(id uint64, _ *edgeIngressFlow) { ids = append(ids, id) })
		switch err := e.maps.EgressFlows.Delete(&keys[i]); {
		case err == nil:
			e.peers.note(&keys[i], out.Role, -1)
		case !errors.Is(err, ebpf.ErrKeyNotExist):
			return fmt.Errorf("host edge: remove flow: %w", err)
		}
	}
	return deleteAll(e.maps.IngressFlows, ids)
}

// deleteAll deletes socketIDs; those that are gone already are no error.
func deleteAll(m *ebpf.Map, ids []uint64) error {
	for start := 0; start < len(ids); {
		n, err := m.BatchDelete(ids[start:], nil)
		start += n
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			start++ // gone already
		} else if err != nil {
			return fmt.Errorf("host edge: remove flows: %w", err)
		}
	}
	return nil
}

// orphanRounds is how many sweeps there are for one that looks for orphans, orphanIdle how long they are silent.
const (
	orphanRounds = 16
	orphanIdle   = connectingIdle
)

// seldom does what not every sweep needs.
func (e *Edge) seldom(now uint64) (err error) {
	e.sweeps++
	if e.sweeps%formerRounds == 0 {
		err = errors.Join(e.sweepFormer(now), e.sweepAnswerPorts())
	}
	if e.sweeps%orphanRounds == 0 {
		err = errors.Join(err, e.sweepOrphans(now))
	}
	return err
}

// sweepOrphans removes the socketIDs whose flow is gone: where one CPU ends a flow while another
// adds to it, one may be left.
func (e *Edge) sweepOrphans(now uint64) error {
	var ids []uint64
	err := scan(e.maps.IngressFlows, func(id *uint64, in *edgeIngressFlow) bool {
		var out edgeEgressFlow
		if age(now, in.Seen) > orphanIdle && (e.maps.EgressFlows.Lookup(&in.Key, &out) != nil || out.Birth != in.Birth) {
			ids = append(ids, *id)
		}
		return true
	})
	if err != nil {
		return err
	}
	return deleteAll(e.maps.IngressFlows, ids)
}

// age is how long ago seen was, also where it lies before the machine began; 0 where it is to come.
func age(now, seen uint64) time.Duration { return max(0, time.Duration(now-seen)) }

// IdleMS is for how many milliseconds nothing has been seen, by a stamp of the edge.
func IdleMS(seen uint64) int64 { return age(ktime.Now(), seen).Milliseconds() }
