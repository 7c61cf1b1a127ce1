package emubench

import (
	"context"
	"slices"
	"testing"
)

func TestRoundsGiveEveryLaneEveryPlace(t *testing.T) {
	var lanes []*lane
	var order []int
	for i := range 3 {
		lanes = append(lanes, &lane{run: func(context.Context) (float64, error) {
			order = append(order, i)
			return float64(i), nil
		}})
	}
	if err := rounds(t.Context(), 6, lanes); err != nil {
		t.Fatal(err)
	}
	var places [3][3]int
	for at, who := range order {
		places[who][at%3]++
	}
	for who, l := range lanes {
		if len(l.got) != 6 || places[who] != [3]int{2, 2, 2} {
			t.Errorf("lane %d: %v samples, %v times in each place", who, l.got, places[who])
		}
	}
	if !slices.Equal(order[:6], []int{0, 1, 2, 2, 1, 0}) {
		t.Errorf("began with %v: a pair of rounds goes there and back", order[:6])
	}
}

func TestRoundsEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rounds(ctx, 1, []*lane{{}}); err == nil {
		t.Error("went on")
	}
}
