package controld

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

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

func TestWhatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for says, cfg := range map[string]Config{
		"nowhere to listen": {},
		"port is taken":     {Listen: []string{taken.Addr().String()}},
		"domain":            {Domain: "a b", Listen: []string{"127.0.0.1:0"}},
		"announce -5s":      {Announce: -5 * time.Second, Listen: []string{"127.0.0.1:0"}},
		"advertise":         {Advertise: []string{"nonsense"}, Listen: []string{"127.0.0.1:0"}},
		"not a directory":   {Data: "/dev/null/x", Listen: []string{"127.0.0.1:0"}},
	} {
		if err := Run(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want an error that speaks of %q", err, says)
		}
	}
}
