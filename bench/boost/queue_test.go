package boost

import (
	"math"
	"testing"
)

func TestTheQueueIsReadFromTheKernelsRoundTrips(t *testing.T) {
	const text = `ESTAB 0 0 10.95.0.1:40000 10.95.0.2:23731
	 bbr wscale:10,10 rto:260 rtt:63.2/1.1 mss:1448 rcv_rtt:55 minrtt:50.1
ESTAB 0 0 10.95.0.1:40001 10.95.0.2:23731
	 bbr wscale:10,10 rto:260 rtt:61.1/1.1 mss:1448 minrtt:50.6`
	if got := waiting(text); math.Abs(got-11) > 1e-9 {
		t.Errorf("%v ms", got)
	}
	if got := waiting("ESTAB 0 0 10.95.0.1:40000 10.95.0.2:23731 cubic"); !math.IsInf(got, 1) {
		t.Errorf("where nothing was measured: %v ms", got)
	}
}

func TestWhatWasSeenInASpoiltRunIsBlamedAsTheRunIs(t *testing.T) {
	all := queues{{1, 2}, nil, {3}}.of([]outcome{{0, ""}, {0, ""}, {0, "late"}})
	if len(all) != 3 || all[0] != (outcome{1, ""}) || all[2] != (outcome{3, "late"}) {
		t.Errorf("%v", all)
	}
}
