package emu

import (
	"strings"
	"testing"
	"time"
)

func TestParametersAreWrittenAsTheyAreRead(t *testing.T) {
	for _, in := range []string{
		"", "rate 10Mbit", "rate 1500Kbit queue 64KB delay 20ms jitter 2ms", "delay 1m0s jitter 1s unordered true",
		"loss 1%", "loss 0.001%", "burst-loss 2.5% burst 3.5", "duplicate 100% reorder 30% reorder-by 2ms",
	} {
		var p Params
		words := strings.Fields(in)
		for i := 0; i < len(words); i += 2 {
			if err := p.Set(words[i], words[i+1]); err != nil {
				t.Errorf("%q: %v", in, err)
			}
		}
		if got := p.String(); got != in {
			t.Errorf("%q became %q", in, got)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestImpossibleValuesAreRefused(t *testing.T) {
	for _, in := range []string{
		"rate 1", "rate 7kbit", "rate 1Tbit", "queue -1", "queue 2GB", "queue many", "delay 2m", "delay -1s", "delay 20", "loss 1",
		"loss 101%", "loss -1%", "loss NaN%", "burst 0", "burst NaN", "unordered yes", "seed -1", "seed x", "speed 3",
	} {
		key, value, _ := strings.Cut(in, " ")
		var p Params
		if err := p.Set(key, value); err == nil {
			t.Errorf("%q was read as %v", in, p)
		}
	}
	for _, p := range []Params{
		{Rate: 1}, {Queue: 1000}, {Rate: 1e6, Queue: MaxQueue + 1}, {Delay: MaxDelay + 1}, {Delay: -1}, {Jitter: time.Second},
		{Delay: time.Second, Jitter: -1}, {ReorderBy: -1}, {Burst: 0.5}, {BurstLoss: 1}, {BurstLoss: 0.9, Burst: 2}, {Loss: 1.1}, {Duplicate: -1},
	} {
		if p.Validate() == nil {
			t.Errorf("%+v is valid", p)
		}
	}
}

func FuzzSet(f *testing.F) {
	for _, k := range keys {
		f.Add(k.name, "1")
		f.Add(k.name, "1%")
		f.Add(k.name, "1ms")
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		p := Params{Rate: 1e6, Delay: MaxDelay, Burst: maxBurst}
		if p.Set(key, value) != nil || key == "burst-loss" || key == "seed" {
			return
		}
		var again Params
		words := strings.Fields(p.String())
		for i := 0; i < len(words); i += 2 {
			if err := again.Set(words[i], words[i+1]); err != nil {
				t.Errorf("%s %s: %q: %v", key, value, p, err)
			}
		}
		if again.String() != p.String() {
			t.Errorf("%s %s: %q became %q", key, value, p, again)
		}
	})
}

func TestRates(t *testing.T) {
	for in, want := range map[string]uint64{
		"1Gbit": 1e9, "10mbit": 1e7, "2.5Mbit": 2.5e6, "64kbit": 64e3, "8000bit": 8000, "100Gbit/s": 1e11,
		"": 0, "1": 0, "fast": 0, "0Mbit": 0, "-1Mbit": 0, "1Tbit": 0, "101Gbit": 0, "NaNMbit": 0, "1e9Gbit": 0, "InfMbit": 0,
	} {
		got, err := ParseRate(in)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("ParseRate(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
}

func TestNoneTakesARateOrAQueueBack(t *testing.T) {
	p := Params{Rate: 1e6, Queue: 1 << 16, Delay: time.Second}
	if err := p.Set("queue", "none"); err != nil || p.Queue != 0 {
		t.Errorf("queue none: %v, %+v", err, p)
	}
	p.Queue = 1 << 16
	if err := p.Set("rate", "none"); err != nil || p.Validate() != nil || p != (Params{Delay: time.Second}) {
		t.Errorf("rate none of a link with a queue: %v, %v, %+v", err, p.Validate(), p)
	}
}
