package config

import (
	"testing"

	"scaffold.dev/scaffold/internal/core/names"
)

func TestServicesOfTheCommandLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ServiceSpec{
		"web":                         {Name: "web"},
		"web:ready=http:/ok,weight=3": {Name: "web", Policy: names.Policy{Ready: "http:/ok", Weight: 3}},
		"db:datagrams=unbound,dscp=8": {Name: "db", Policy: names.Policy{Datagrams: "unbound", DSCP: 8}},
	} {
		if got, err := ParseServiceSpec(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"web:x=1", "web:weight=x", "web:weight=70000", "web:ready=x"} {
		if got, err := ParseServiceSpec(text); err == nil {
			t.Errorf("%s was read as %+v", text, got)
		}
	}
}
