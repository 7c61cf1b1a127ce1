package hostd

import (
	"errors"
	"testing"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A host that is told controllers of two networks stays with the first that it joined, and names the other.
func TestAHostBelievesTheControllersOfOneNetwork(t *testing.T) {
	for endpoints, want := range map[string]error{"one": nil, "several": errOther} {
		list := []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}
		if endpoints == "one" {
			list = list[:1]
		}
		c := newControl(&daemon{controllers: api.NewControllers(list)})
		for _, id := range []string{"a", "a"} {
			if err := c.believe(&apiv1.Joined{Network: "net", NetworkId: id}); err != nil {
				t.Errorf("%s: its own network: %v", endpoints, err)
			}
		}
		if err := c.believe(&apiv1.Joined{Network: "other", NetworkId: "b"}); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", endpoints, err, want)
		}
	}
}
