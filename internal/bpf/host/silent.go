package host

import (
	"time"

	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/sid"
)

// silentFor is how long a connection is silent until somebody asks whether it has a socket: longer than a kernel
// repeats a SYN-ACK, and than most keepalives wait.
const silentFor = 5 * time.Minute

// A Silent is a connection of which nothing was sent or heard for long.
type Silent struct {
	Tuple Tuple
	birth [8]byte
}

// Silent lists the connections that are silent and have not ended. TCP may be so for days; but an end of which the
// edge sees no FIN or RST leaves a flow without a socket: the kernel had no room for a client's acknowledgement, which
// the edge let in, and the client is gone, or it gave a connection up whose peer did not answer.
func (e *Edge) Silent() (list []Silent, err error) {
	now := ktime.Now()
	err = scan(e.maps.EgressFlows, func(key *edgeFlowKey, out *edgeEgressFlow) bool {
		if e.silent(now, key, out) {
			list = append(list, Silent{tupleOf(key), out.Birth})
		}
		return true
	})
	return list, err
}

func (e *Edge) silent(now uint64, key *edgeFlowKey, out *edgeEgressFlow) bool {
	return key.Proto == uint8(sid.TCP) && State(out.State) == BoundFlow && out.End == 0 && out.Watch == 0 &&
		age(now, out.Seen) > silentFor && age(now, e.heard(out)) > silentFor
}

// SweepSilent removes those of the list that are silent still; the caller knows that they have no socket.
func (e *Edge) SweepSilent(list []Silent) (removed int, err error) {
	now := ktime.Now()
	var keys []edgeFlowKey
	var flows []edgeEgressFlow
	for _, s := range list {
		key := s.Tuple.key()
		var out edgeEgressFlow
		if e.maps.EgressFlows.Lookup(&key, &out) == nil && out.Birth == s.birth && e.silent(now, &key, &out) {
			keys, flows = append(keys, key), append(flows, out)
		}
	}
	return len(keys), e.remove(keys, flows)
}
