package backoff

import (
	"slices"
	"testing"
	"time"
)

func TestPausesDoubleUpToTheLastAndBeginAnew(t *testing.T) {
	b := Backoff{First: 20, Last: 100}
	var got []time.Duration
	for range 5 {
		got = append(got, b.Next())
	}
	b.Reset()
	got = append(got, b.Now(), b.Next(), b.Next())
	b.Set(500)
	got = append(got, b.Next(), b.Now())
	if want := []time.Duration{20, 40, 80, 100, 100, 20, 20, 40, 500, 500}; !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
}
