package joining

import (
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A controller of before says nothing of when clients are accepted: once the server has answered.
func TestALaneIsReadAsTold(t *testing.T) {
	for _, atOnce := range []bool{false, true} {
		l, err := decodeLane(&apiv1.BoostLane{Number: 1, Client: "192.0.2.0/24", Server: "198.51.100.0/24", Near: "e1", Far: []string{"w1"}, AtOnce: atOnce})
		if err != nil || l.AtOnce != atOnce {
			t.Errorf("%v: %+v, %v", atOnce, l, err)
		}
	}
}
