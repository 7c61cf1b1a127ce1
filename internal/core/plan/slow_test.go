package plan

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// TestMostOfAServiceIsNotTakenAwayForBeingSlow: by weight; who is stopped goes in any case while another serves.
func TestMostOfAServiceIsNotTakenAwayForBeingSlow(t *testing.T) {
	ready, slow, stopped := Readiness{Ready: true}, Readiness{Queue: true, Slow: true}, Readiness{Queue: true}
	for name, c := range map[string]struct {
		weights []uint32
		say     []Readiness
		want    []bool
	}{
		"one of two, equal":       {[]uint32{1, 1}, []Readiness{ready, slow}, []bool{true, false}},
		"the heavy one":           {[]uint32{1, 3}, []Readiness{ready, slow}, []bool{true, true}},
		"the light one":           {[]uint32{3, 1}, []Readiness{ready, slow}, []bool{true, false}},
		"the heavy one, stopped":  {[]uint32{1, 3}, []Readiness{ready, stopped}, []bool{true, false}},
		"two of three":            {[]uint32{1, 1, 1}, []Readiness{ready, slow, slow}, []bool{true, true, true}},
		"one slow, one stopped":   {[]uint32{1, 1, 1}, []Readiness{ready, slow, stopped}, []bool{true, false, false}},
		"all slow":                {[]uint32{1, 1}, []Readiness{slow, slow}, []bool{true, true}},
		"one slow, the rest dead": {[]uint32{1, 1}, []Readiness{slow, stopped}, []bool{true, false}},
		"all stopped":             {[]uint32{1, 1}, []Readiness{stopped, stopped}, []bool{true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := weighed(c.weights, c.say)
			for i, want := range c.want {
				if holds(got, aHost(i).place().Locator) != want {
					t.Errorf("targets %v: the one with weight %d that is %+v is there: %v, want %v", got, c.weights[i], c.say[i], !want, want)
				}
			}
		})
	}
}

// weighed are the targets of hosts with such weights, which say so of what they serve.
func weighed(weights []uint32, say []Readiness) []resolve.Target {
	at := port{proto: sid.TCP, port: 80}
	s := &service{overrides: map[string]Override{}, ports: map[port]*table{at: {instances: map[*host]Readiness{}}}}
	for i := range say {
		h := aHost(i)
		s.overrides[h.name] = Override{Weight: weights[i], Set: true}
		s.ports[at].instances[h] = say[i]
	}
	return (&Plan{}).compute(s, at)
}

func TestAnInstanceIsWeighedByItsListenersThatWork(t *testing.T) {
	ready, stopped := Readiness{Ready: true}, Readiness{Queue: true}
	part := func(working, of uint32) Readiness { return Readiness{Ready: true, Working: working, Listeners: of} }
	slowPart := func(working, of uint32) Readiness {
		return Readiness{Ready: true, Slow: true, Working: working, Listeners: of}
	}
	for name, c := range map[string]struct {
		weights []uint32
		say     []Readiness
		want    []uint32
	}{
		"three of four":                        {[]uint32{100, 100}, []Readiness{ready, part(3, 4)}, []uint32{100, 75}},
		"rounded":                              {[]uint32{100, 100}, []Readiness{part(1, 3), part(2, 3)}, []uint32{33, 67}},
		"never nothing":                        {[]uint32{1000, 1}, []Readiness{ready, part(1, 1000)}, []uint32{1000, 1}},
		"all, said by an older host":           {[]uint32{3, 1}, []Readiness{part(0, 0), ready}, []uint32{3, 1}},
		"what cannot be":                       {[]uint32{3, 1}, []Readiness{part(5, 4), part(0, 4)}, []uint32{3, 1}},
		"beside one that does not accept":      {[]uint32{100, 100}, []Readiness{part(1, 2), stopped}, []uint32{50}},
		"most of the weight, stopped":          {[]uint32{300, 100}, []Readiness{part(1, 4), ready}, []uint32{75, 100}},
		"most of the weight, slow":             {[]uint32{300, 100}, []Readiness{slowPart(1, 4), ready}, []uint32{300, 100}},
		"less than half of the weight, slow":   {[]uint32{100, 100}, []Readiness{slowPart(1, 4), ready}, []uint32{25, 100}},
		"a slow part, and one slow as a whole": {[]uint32{100, 100, 100}, []Readiness{slowPart(1, 2), {Queue: true, Slow: true}, ready}, []uint32{50, 100}},
		"parts and wholes, most of it slow":    {[]uint32{100, 100, 100}, []Readiness{slowPart(1, 4), {Queue: true, Slow: true}, ready}, []uint32{100, 100, 100}},
	} {
		var got []uint32
		for _, x := range weighed(c.weights, c.say) {
			got = append(got, x.Weight)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: weights %v, want %v", name, got, c.want)
		}
	}
}

// Whatever hosts say: who works in part has its part of its weight to the next whole number, and something; slowness takes
// no more than it leaves; and one listener more that works never takes from an instance.
func TestWeightsFollowTheListenersThatWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var weights []uint32
		var say []Readiness
		for range rapid.IntRange(1, 6).Draw(t, "hosts") {
			weights = append(weights, rapid.Uint32Range(1, resolve.MaxWeight).Draw(t, "weight"))
			r := Readiness{Ready: rapid.Bool().Draw(t, "ready"), Slow: rapid.Bool().Draw(t, "slow")}
			if r.Queue = !r.Ready; r.Ready {
				r.Listeners = rapid.Uint32Range(1, 64).Draw(t, "listeners")
				r.Working = rapid.Uint32Range(1, r.Listeners).Draw(t, "working")
			}
			say = append(say, r)
		}
		got := map[sid.Locator]uint32{}
		for _, x := range weighed(weights, say) {
			got[x.Locator] = x.Weight
		}
		var left, taken float64
		for i, r := range say {
			w, has := float64(weights[i]), got[aHost(i).place().Locator]
			if !r.Ready {
				if r.Slow && has == 0 {
					taken += w
				}
				continue
			}
			part := w * float64(r.Working) / float64(r.Listeners)
			switch {
			case has == 0:
				t.Fatalf("host %d, %+v, gets nothing; targets %v", i, r, got)
			case has != weights[i] && has != 1 && math.Abs(float64(has)-part) > 0.5:
				t.Fatalf("host %d, %+v, has %d of %d", i, r, has, weights[i])
			case has == weights[i] && !r.Slow && w-part > 1:
				t.Fatalf("host %d, %+v, has all of %d, though what stopped goes in any case", i, r, has)
			}
			if left += float64(has); r.Slow {
				taken += w - float64(has)
			}
			if r.Working < r.Listeners {
				more := slices.Clone(say)
				more[i].Working++
				for _, x := range weighed(weights, more) {
					if x.Locator == aHost(i).place().Locator && x.Weight < r.share(weights[i]) {
						t.Fatalf("host %d: %d with a listener more that works, %d without", i, x.Weight, has)
					}
				}
			}
		}
		if taken > left && left > 0 {
			t.Fatalf("%v of %v are taken for being slow: weights %v, %+v", taken, taken+left, weights, say)
		}
	})
}

// aHost is the i-th host, up.
func aHost(i int) *host {
	l := sid.DefaultSpace().Locator(uint16(0x201 + i))
	h := &host{name: string(rune('a' + i)), at: map[sid.Locator]*place{}, prefers: l}
	h.at[l] = &place{Host: Host{Locator: l, State: HostUp}, host: h}
	return h
}
