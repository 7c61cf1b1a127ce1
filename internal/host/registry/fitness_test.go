package registry

import (
	"testing"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/serving"
)

// TestWhoIsFitIsWhomTheNetworkWouldChoose; what is not known yet is said to be so.
func TestWhoIsFitIsWhomTheNetworkWouldChoose(t *testing.T) {
	for name, c := range map[string]struct {
		i     instance
		known bool
		want  host.Judgement
	}{
		"ready":                           {instance{}, true, host.Fit},
		"its policy is not known yet":     {instance{}, false, host.Later},
		"it served before the daemon":     {instance{trusted: true}, false, host.Fit},
		"its check has not ended yet":     {instance{check: unchecked}, true, host.Later},
		"its check fails":                 {instance{check: "ready check: connection refused"}, true, host.Unfit},
		"it is drained":                   {instance{drained: true}, false, host.Unfit},
		"its user may not serve":          {instance{refused: "user nobody may not serve"}, true, host.Unfit},
		"the controller refuses it":       {instance{refused: "refused by the controller"}, false, host.Unfit},
		"its program accepts nothing":     {instance{stuck: serving.Verdict{Reason: "accepts nothing"}}, true, host.Unfit},
		"it is drained during its check":  {instance{drained: true, check: unchecked}, true, host.Unfit},
		"it is refused and nothing known": {instance{refused: "no room"}, false, host.Unfit},
	} {
		if got := c.i.fit(c.known); got != c.want {
			t.Errorf("%s: judged %d, want %d", name, got, c.want)
		}
	}
}
