package boost

import (
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func TestATrunkIsShownWithItsConnections(t *testing.T) {
	got := trunks([]*apiv1.BoostTrunk{
		{Agent: "west", Up: true, Connections: 4, RttUs: 51_000}, {Agent: "south", Up: true, Connections: 1}, {Agent: "north", RttUs: 51_000},
	})
	if want := "west 4 x 51ms, south 1, north down"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
