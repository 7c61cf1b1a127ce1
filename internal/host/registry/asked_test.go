package registry

import (
	"io"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
)

// The flows' side takes flows over only for what this host may serve: as with first packets, once it is known who may
// connect.
func TestWhoMayServeIsToldToTheFlowsSide(t *testing.T) {
	for what, c := range map[string]struct {
		instance
		known bool
		may   bool
	}{
		"nobody has said who may connect": {instance{}, false, false},
		"it served before this daemon":    {instance{trusted: true}, false, true},
		"the policy is known":             {instance{}, true, true},
		"the controller refuses it":       {instance{refused: "its permit has expired"}, true, false},
	} {
		r := in(t, &world{}, io.Discard)
		r.instances[web] = &c.instance
		if c.known {
			r.policies[webID] = &apiv1.ServicePolicy{}
		}
		r.Each(func(triple sid.Triple, may bool) {
			if triple != web || may != c.may {
				t.Errorf("%s: %v may: %v, want %v", what, triple, may, c.may)
			}
		})
	}
}
