package member

import (
	"errors"
	"testing"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A member that is told controllers of two networks stays with the first that it joined and names the other, and one whose
// leader's time is over follows it no more, if it minds: routers do. One that knows a single controller follows it wherever
// its store was replaced.
func TestAMemberBelievesTheControllersOfOneNetwork(t *testing.T) {
	list := []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}
	several, alone, host := newFake(api.NewControllers(list)), newFake(api.NewControllers(list[:1])), newFake(api.NewControllers(list))
	host.m.Epoch = nil
	for _, c := range []struct {
		joined        *apiv1.RouterJoined
		several, host error
	}{
		{&apiv1.RouterJoined{Network: "one", NetworkId: "a", Epoch: 3}, nil, nil},
		{&apiv1.RouterJoined{Network: "two", NetworkId: "b", Epoch: 4}, ErrOther, ErrOther},
		{&apiv1.RouterJoined{Network: "one", NetworkId: "a", Epoch: 2}, ErrDeposed, nil},
		{&apiv1.RouterJoined{Network: "one", NetworkId: "a", Epoch: 3}, nil, nil},
		{&apiv1.RouterJoined{Network: "one", NetworkId: "a", Epoch: 5}, nil, nil},
	} {
		for who, x := range map[string]struct {
			f    *fake
			want error
		}{"a router of several": {several, c.several}, "of one": {alone, nil}, "a host": {host, c.host}} {
			if err := x.f.m.follow(list[0], c.joined); !errors.Is(err, x.want) || x.want == nil && err != nil {
				t.Errorf("%s, %v: %v, want %v", who, c.joined, err, x.want)
			}
		}
	}
}
