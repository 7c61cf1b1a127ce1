package longpath

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// A route that a step has changed is as it was: there again, or not there.
func TestRoutesAreAsTheyWere(t *testing.T) {
	for _, c := range []struct{ to, was, want string }{
		{"10.2.0.2", "", "ip -4 route del 10.2.0.2/32"},
		{"fd02::2", "\n", "ip -6 route del fd02::2/128"},
		{"10.2.0.2", "10.2.0.2 via 10.9.0.2 dev eth0 \n", "ip -4 route replace 10.2.0.2 via 10.9.0.2 dev eth0"},
		{"fd02::2", "fd02::2 dev eth0 proto 92 metric 1024 pref medium\n", "ip -6 route replace fd02::2 dev eth0 proto 92 metric 1024 pref medium"},
	} {
		w := way{host: "c1", to: netip.MustParseAddr(c.to), was: c.was}
		if got := strings.Join(w.back(), " "); got != c.want {
			t.Errorf("%q: %s, want %s", c.was, got, c.want)
		}
	}
}

// What a step has killed is started once, by the step or behind it, and behind it also where the step's time is over.
func TestWhatAStepHasKilledIsStartedAgain(t *testing.T) {
	for _, comes := range []bool{true, false} {
		starts := 0
		step := func(ctx context.Context) error {
			now, end := revival(func(ctx context.Context) error { starts++; return ctx.Err() })
			defer end()
			if !comes {
				return errors.New("the second curl did not start")
			}
			return now(ctx)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if !comes {
			cancel()
		}
		if err := step(ctx); (err == nil) != comes || starts != 1 {
			t.Errorf("the step came to start it: %v; %v, %d starts", comes, err, starts)
		}
		cancel()
	}
}
