package hostd

import (
	"testing"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/host/guests"
	"scaffold.dev/scaffold/internal/host/places"
)

// A flow that has moved is asked for by the name that it had: its history says where it stands, as the list does.
func TestTheHistoryOfAFlowSaysItsUplink(t *testing.T) {
	d := &daemon{store: store{t.TempDir()}, guests: &guests.Guests{}, places: places.New(places.Config{}, places.Place{Uplink: "eth1", Index: 7})}
	d.names, d.serving = d.newNames(), newRegistry(d)
	told := (&local{d: d}).history(nil, host.Flow{Uplink: 7}, true)
	if told.Flow.Uplink != "eth1" {
		t.Errorf("its uplink is %q, want eth1: %v", told.Flow.Uplink, told.Flow)
	}
}
