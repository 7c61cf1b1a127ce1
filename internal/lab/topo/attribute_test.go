package topo

import (
	"testing"
	"time"
)

func TestRatesAndDelaysAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]uint64{
		"10Gbit": 1e10, "10 Gbps": 1e10, "10G": 1e10, "10000000000": 1e10, "1e9": 1e9, "2.5 Mbit/s": 2.5e6, "64kbits": 64e3, "0": 0, "1Tbit": 1e12,
	} {
		if got, err := rate(text); got != want || err != nil {
			t.Errorf("rate(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "fast", "-1", "NaN", "Inf", "1e300", "0.1", "10 GB", "Gbit"} {
		if got, err := rate(text); err == nil {
			t.Errorf("rate(%q) = %d, want an error", text, got)
		}
	}
	for text, want := range map[string]time.Duration{"5ms": 5 * time.Millisecond, "5 ms": 5 * time.Millisecond, "2.5": 2500 * time.Microsecond, "300us": 300 * time.Microsecond, "0": 0} {
		if got, err := delay(text); got != want || err != nil {
			t.Errorf("delay(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1ms", "-1", "NaN", "Inf", "2h", "soon", "1e300"} {
		if got, err := delay(text); err == nil {
			t.Errorf("delay(%q) = %v, want an error", text, got)
		}
	}
}
