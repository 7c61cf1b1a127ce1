package routerd

import (
	"errors"
	"testing"

	"scaffold.dev/scaffold/internal/core/plan"
)

// What a report can say is bounded by what went wrong, not by how many pieces a snapshot has.
func TestPiecesWithoutAnErrorLeaveRoomForOne(t *testing.T) {
	d := &daemon{}
	d.naming.Begin()
	for range 2 * maxErrors {
		d.apply(1, plan.Rules{}, nil)
	}
	broken := errors.New("full")
	errs := d.refused
	each([]int{1}, &errs, func(int) error { return broken })
	if err := errors.Join(errs...); !errors.Is(err, broken) {
		t.Errorf("the snapshot's end is reported with %v, want that the kernel refused a part of it", err)
	}
}
