package agent

import (
	"errors"
	"testing"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A router that is told controllers of two networks stays with the first that it joined, and one whose leader's time is
// over follows it no more. One that knows a single controller follows it wherever its store was replaced.
func TestARouterBelievesTheControllersOfOneNetwork(t *testing.T) {
	several := &Router{Controllers: api.NewControllers([]string{"http://127.0.0.1:1", "http://127.0.0.1:2"})}
	alone := &Router{Controllers: api.NewControllers([]string{"http://127.0.0.1:1"})}
	for _, c := range []struct {
		joined  *apiv1.RouterJoined
		several error
	}{
		{&apiv1.RouterJoined{Network: "one", NetworkId: "a", Epoch: 3}, nil},
		{&apiv1.RouterJoined{Network: "one", NetworkId: "b", Epoch: 4}, errOtherNetwork},
		{&apiv1.RouterJoined{Network: "one", NetworkId: "a", Epoch: 2}, errDeposed},
		{&apiv1.RouterJoined{Network: "one", NetworkId: "a", Epoch: 3}, nil},
		{&apiv1.RouterJoined{Network: "one", NetworkId: "a", Epoch: 5}, nil},
	} {
		if err := several.believe(c.joined); !errors.Is(err, c.several) || c.several == nil && err != nil {
			t.Errorf("%v: %v, want %v", c.joined, err, c.several)
		}
		if err := alone.believe(c.joined); err != nil {
			t.Errorf("with one controller, %v: %v", c.joined, err)
		}
	}
}
