package session

import (
	"testing"
	"time"
	"unsafe"

	"scaffold.dev/scaffold/sid"
)

func TestAMeasureIsKeptForEachSourceAndForAll(t *testing.T) {
	m, now := NewMeasure(Rate{10, 20}, Rate{100, 50}), time.Unix(1e9, 0)
	take := func(source sid.Locator, n int) (got int) {
		for range n {
			if m.Take(now, source) {
				got++
			}
		}
		return got
	}
	m.seed = 0x9E3779B97F4A7C15 // by which these two do not share what one has
	first, other := locator(0, 0), locator(1, 0)
	if n := take(first, 1000); n != 20 {
		t.Errorf("one source was let through %d times at once, want 20", n)
	}
	if n := take(other, 1000); n != 20 {
		t.Errorf("the next one %d times, want 20", n)
	}
	now = now.Add(time.Second)
	if n := take(first, 1000); n != 10 {
		t.Errorf("a second later %d times, want 10", n)
	}
	now = now.Add(time.Hour)
	all := 0
	for i := range 65536 {
		all += take(sid.Locator(uint64(first)+uint64(i)<<16), 1)
	}
	if all != 50 {
		t.Errorf("all together %d times at once, want 50", all)
	}
}

// As many sources as an address plan has cost as much memory as none.
func TestAMeasureDoesNotGrow(t *testing.T) {
	m, now := NewMeasure(Rate{1, 1}, Rate{1 << 30, 1 << 30}), time.Unix(1e9, 0)
	if n := testing.AllocsPerRun(100000, func() {
		now = now.Add(time.Microsecond)
		m.Take(now, sid.Locator(now.UnixNano()))
	}); n != 0 {
		t.Errorf("%v allocations for a source", n)
	}
	if size := unsafe.Sizeof(*m); size > 128<<10 {
		t.Errorf("%d bytes", size)
	}
}
