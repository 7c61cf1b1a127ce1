package host

import (
	"time"

	"scaffold.dev/scaffold/internal/bpf/ktime"
)

// bornGrain is the unit of a flow's birth in abi.h, as a shift, and bornMask what there is room for.
const (
	bornGrain = 29
	bornMask  = 1<<24 - 1
)

// Began is when the first packet of the flow passed this edge, or when it came here from another instance, to half
// a second; false where that is not known. Of a flow that is older than 104 days it is too late by as much.
func (f *Flow) Began() (time.Time, bool) {
	age, known := ageOf(f.born, ktime.Now())
	return time.Now().Add(-age), known
}

// ageOf is how long ago that was on CLOCK_MONOTONIC, now.
func ageOf(born [3]uint8, now uint64) (time.Duration, bool) {
	at := uint64(born[0]) | uint64(born[1])<<8 | uint64(born[2])<<16
	if at == 0 {
		return 0, false
	}
	ago := (now>>bornGrain - at) & bornMask
	return time.Duration(ago<<bornGrain + now&(1<<bornGrain-1)), true
}

// bornAt is a moment as the edge keeps it.
func bornAt(now uint64) [3]uint8 {
	at := max(1, now>>bornGrain&bornMask)
	return [3]uint8{uint8(at), uint8(at >> 8), uint8(at >> 16)}
}
