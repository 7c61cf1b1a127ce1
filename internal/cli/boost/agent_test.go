package boost

import (
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func TestATrunkIsShownWithItsConnections(t *testing.T) {
	got := trunks([]*apiv1.BoostTrunk{
		{Agent: "west", Up: true, Connections: 4, RttUs: 51_000}, {Agent: "south", Up: true, Connections: 1}, {Agent: "north", RttUs: 51_000},
		{Agent: "both", Up: true, Connections: 4, RttUs: 20_000, Ways: []*apiv1.BoostWay{
			{Own: "192.0.2.1", Other: "198.51.100.1", Up: true, Connections: 4, RttUs: 20_000, Path: &apiv1.BoostPath{Bound: "full"}},
			{Own: "203.0.113.1", Other: "198.51.100.129", Why: "the other agent does not answer"},
		}},
	})
	if want := "west 4 x 51ms, south 1, north down, both 4 x 20ms (192.0.2.1 to 198.51.100.1 4 x 20ms, full; 203.0.113.1 to 198.51.100.129 lost: the other agent does not answer)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
