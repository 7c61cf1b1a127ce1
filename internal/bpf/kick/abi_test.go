package kick

import (
	"testing"
	"time"
)

func TestABI(t *testing.T) {
	if recordLen != 192 { // stands in record.h too
		t.Errorf("a record has %d bytes, want 192", recordLen)
	}
	spec, err := loadDump()
	if err != nil {
		t.Fatal(err)
	}
	if n := spec.Maps[dumpMapLooks].MaxEntries; n != mostLooks {
		t.Errorf("%d connections are looked at in a run, in Go %d", n, mostLooks)
	}
}

// The two clocks begin apart by what the kernel chose, and run apart by a little.
func TestTheTickIsFound(t *testing.T) {
	for _, hz := range []uint64{100, 250, 300, 1000} {
		for _, up := range []time.Duration{time.Second, time.Minute, 24 * time.Hour, 4000 * time.Hour} {
			jiffies := 1<<32 - 300*hz + uint64(up.Seconds()*float64(hz))
			if got, want := jiffyOf(up+3*time.Millisecond, jiffies), time.Second/time.Duration(hz); got != want {
				t.Errorf("up %v at %d Hz: a jiffy is %v, want %v", up, hz, got, want)
			}
		}
	}
}
