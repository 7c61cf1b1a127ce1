package host

import (
	"testing"

	"scaffold.dev/scaffold/sid"
)

// TestJudgementsOfWhatIsGoneAreSwept: a daemon that ended said them of programs that ended before the next one began.
func TestJudgementsOfWhatIsGoneAreSwept(t *testing.T) {
	e := newEdge(t, Config{})
	gone := sid.Triple{Service: web, Proto: sid.TCP, Port: 81}
	must(t, e.Judge(webTCP, Unfit))
	must(t, e.Judge(gone, Later))
	must(t, e.Judge(gone, Fit))
	must(t, e.Judge(gone, Fit)) // nothing is said any more, and that is no error
	must(t, e.Judge(gone, Unfit))
	must(t, e.SweepJudgements(func(t sid.Triple) bool {
		return t == sid.Triple{Service: sid.ServiceID{Suffix: web.Suffix}, Proto: sid.TCP, Port: webTCP.Port}
	}))
	left := map[edgeInstanceKey]uint32{}
	must(t, scan(e.maps.Judged, func(k *edgeInstanceKey, j *uint32) bool { left[*k] = *j; return true }))
	if len(left) != 1 || left[*instanceKey(webTCP)] != uint32(Unfit) {
		t.Errorf("left: %v, want that of %v", left, webTCP)
	}
}
