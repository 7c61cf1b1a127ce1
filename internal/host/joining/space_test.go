package joining

import (
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A controller that was broken into does not get what a host says to itself or to its neighbours.
func TestNoControllerTakesLoopbackOrTheLink(t *testing.T) {
	for _, services := range []string{"::/32", "fe80::/32", "ff02::/32"} {
		if space, err := spaceOf(&apiv1.Space{Services: services, As: "fd5d::/48", Identities: "fd5e::/64"}); err == nil {
			t.Errorf("the host takes %v for service addresses", space.Services)
		}
	}
	if _, err := spaceOf(&apiv1.Space{Services: "fd5c::/32", As: "fd5d::/48", Identities: "fd5e::/64"}); err != nil {
		t.Error(err)
	}
}
