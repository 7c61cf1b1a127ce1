package hostd

import (
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
)

// fewSteps is how many flows are looked up one by one; of more, a walk finds all.
const fewSteps = 256

// dropOutdated takes away what is to be done to client's flows whose tuple is another connection's by now.
func (s *sessions) dropOutdated(now time.Time, b *steering) {
	found := s.present(b)
	steps, cause := b.steps[:0], b.cause[:0]
	over := map[session.Key]host.Tuple{}
	for i, c := range b.cause {
		t := b.steps[i].Flow
		if f, there := found[t]; there && s.outdated(c, f) {
			over[c.Key] = t
			continue
		}
		steps, cause = append(steps, b.steps[i]), append(cause, c)
	}
	b.steps, b.cause = steps, cause
	for k, t := range over {
		s.counters["replaced"]++
		s.engine.Close(now, k)
		b.resets = slices.DeleteFunc(b.resets, func(r kick.Tuple) bool { return r == kickTuple(t) })
	}
}

// outdated reports whether a change is of another connection than the edge has.
func (s *sessions) outdated(c session.Change, f host.Flow) bool {
	if c.Kind == session.Reset { // the engine has it no more
		return f.State != host.Connecting && f.Stable != c.Key.Stable
	}
	return s.replaced(c.Key, f)
}

// present is what the edge has of the client's flows in a batch.
func (s *sessions) present(b *steering) map[host.Tuple]host.Flow {
	asked := map[host.Tuple]bool{}
	for i, c := range b.cause {
		if c.Key.Role == session.Client {
			asked[b.steps[i].Flow] = true
		}
	}
	found := make(map[host.Tuple]host.Flow, len(asked))
	if len(asked) > fewSteps {
		s.edge.Walk(func(f host.Flow) bool { //nolint:errcheck // what is not found is steered: the edge refuses it
			if asked[f.Tuple] {
				found[f.Tuple] = f
			}
			return true
		})
		return found
	}
	for t := range asked {
		if f, there, err := s.edge.Lookup(t); err == nil && there {
			found[t] = f
		}
	}
	return found
}
