package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestPausesGrowUpToALimit(t *testing.T) {
	const ms = time.Millisecond
	away, standby, final := errors.New("away"), fmt.Errorf("%w: c2 leads", ErrStandby), fmt.Errorf("%w: no member", ErrFinal)
	type attempt struct {
		joined bool
		err    error
		fresh  bool
	}
	lost, failed := attempt{joined: true, err: away, fresh: true}, attempt{err: away}
	for name, c := range map[string]struct {
		p    Patience
		all  []attempt
		want []time.Duration
	}{
		"away":                             {Patience{Last: 100 * ms}, []attempt{failed, failed, failed, failed}, []time.Duration{25 * ms, 50 * ms, 100 * ms, 100 * ms}},
		"back for a while":                 {Patience{Last: time.Second}, []attempt{failed, failed, failed, lost, failed, failed}, []time.Duration{25 * ms, 50 * ms, 100 * ms, 25 * ms, 25 * ms, 50 * ms}},
		"another one is to be tried":       {Patience{Last: time.Second}, []attempt{failed, failed, failed, {err: away, fresh: true}, failed}, []time.Duration{25 * ms, 50 * ms, 100 * ms, 25 * ms, 200 * ms}},
		"nobody leads yet":                 {Patience{Last: time.Second, Standby: 60 * ms}, []attempt{{err: standby}, {err: standby}, {err: standby}, failed, failed}, []time.Duration{25 * ms, 50 * ms, 60 * ms, 60 * ms, 120 * ms}},
		"somebody has to let it in":        {Patience{Last: time.Second, Final: 10 * time.Second}, []attempt{failed, {err: final}, {err: final}}, []time.Duration{25 * ms, 10 * time.Second, 10 * time.Second}},
		"who asks as often all the same":   {Patience{Last: 50 * ms}, []attempt{{err: final}, {err: final}, {err: final}}, []time.Duration{25 * ms, 50 * ms, 50 * ms}},
		"a standby as any other that asks": {Patience{Last: 50 * ms}, []attempt{{err: standby}, {err: standby}, {err: standby}}, []time.Duration{25 * ms, 50 * ms, 50 * ms}},
	} {
		var got []time.Duration
		for _, a := range c.all {
			got = append(got, c.p.Next(a.joined, a.err, a.fresh))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: pauses %v, want %v", name, got, c.want)
		}
	}
}

func TestAPauseEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			began := time.Now()
			if over := Pause(t.Context(), time.Second, nil); !over || time.Since(began) < time.Second/2 || time.Since(began) >= 3*time.Second/2 {
				t.Fatalf("over: %v, after %v", over, time.Since(began))
			}
		}
		sooner := make(chan struct{})
		close(sooner)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if Pause(t.Context(), time.Hour, sooner) || Pause(ctx, time.Hour, nil) || time.Since(began) > 0 {
			t.Errorf("a pause that was to end at once took %v", time.Since(began))
		}
	})
}
