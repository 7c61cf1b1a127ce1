package mobility

import (
	"context"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// policies says of each service whose policy is known whether its flows continue elsewhere.
type policies map[sid.ServiceID]bool

const (
	mostPolicies = 8192
	// policyWait is how long the end of a flow may wait for the word whether it continues.
	policyWait = 100 * time.Millisecond
)

// Learn takes a service's policy from an answer of the controller.
func (s *flows) Learn(id sid.ServiceID, p *apiv1.Policy) {
	if len(s.policies) >= mostPolicies {
		clear(s.policies)
	}
	may := p.GetFailover() == "continue"
	if was, known := s.policies[id]; known && was == may {
		return
	}
	s.policies[id] = may
	if s.engine == nil {
		return
	}
	var changed []session.Key
	s.engine.Each(func(v session.View) bool {
		if v.Service == id && v.Role == session.Client && v.Proto == sid.TCP {
			changed = append(changed, v.Key)
		}
		return true
	})
	for _, k := range changed {
		s.engine.SetContinue(k, may)
	}
}

func (s *flows) mayContinue(k session.Key, p sid.Proto, id sid.ServiceID) bool {
	return s.keys != nil && k.Role == session.Client && p == sid.TCP && s.policies[id]
}

// unsure adds the service of the flow to the list, once, when nobody has told its policy.
func (s *flows) unsure(list []sid.ServiceID, k session.Key) []sid.ServiceID {
	v, ok := s.engine.View(k)
	if !ok || v.Role != session.Client || v.Proto != sid.TCP {
		return list
	}
	return s.unsureOf(list, v.Service)
}

// unsureOf is unsure of a client's connections to the service.
func (s *flows) unsureOf(list []sid.ServiceID, id sid.ServiceID) []sid.ServiceID {
	if _, known := s.policies[id]; known || s.keys == nil || slices.Contains(list, id) {
		return list
	}
	return append(list, id)
}

// whenPoliciesKnown calls then in the loop, at once where all policies are known, else when the controller has
// told them or does not in time. Of each service it is asked once, whoever waits: when an instance dies hundreds of
// messages say so, and as many questions would not be answered in time.
func (s *questions) whenPoliciesKnown(list []sid.ServiceID, then func()) {
	left := len(list)
	if left == 0 {
		then()
		return
	}
	one := func() {
		if left--; left == 0 {
			then()
		}
	}
	for _, id := range list {
		s.curious[id] = append(s.curious[id], one)
		if len(s.curious[id]) == 1 {
			s.askPolicy(id)
		}
	}
}

// askPolicy asks the controller, and tells all who wait.
func (s *questions) askPolicy(id sid.ServiceID) {
	addr := s.edge.Space().ServiceAddr(id) // the loop may open another edge meanwhile
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, policyWait)
		defer cancel()
		s.controller.AskPolicy(ctx, addr)
		s.post(func() {
			list := s.curious[id]
			delete(s.curious, id)
			for _, one := range list {
				one()
			}
		})
	}()
}
