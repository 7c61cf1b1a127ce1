package controld

import (
	"fmt"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/registrations"
)

// maxHostFlows is more flows than any edge has room for.
const maxHostFlows = 1 << 26

// checkLoad says what of a host's report cannot be. No weight follows from loads; drains and people look at them.
func (h *host) checkLoad(l *apiv1.Load) error {
	if c := l.GetCpu(); !(c >= 0 && c <= 1) { // NaN is neither
		return fmt.Errorf("a CPU busy to %v: want 0 to 1", c)
	}
	if l.Flows > maxHostFlows {
		return fmt.Errorf("%d flows: no host has more than %d", l.Flows, maxHostFlows)
	}
	if len(l.Triples) > registrations.Most {
		return fmt.Errorf("%d instances: a host has at most %d", len(l.Triples), registrations.Most)
	}
	for _, t := range l.Triples {
		if t.Flows > maxHostFlows || max(t.AcceptQueue, t.Backlog) > maxHostFlows {
			return fmt.Errorf("an instance with %d flows and %d of %d waiting: at most %d", t.Flows, t.AcceptQueue, t.Backlog, maxHostFlows)
		}
	}
	return nil
}
