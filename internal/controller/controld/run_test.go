package controld

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/controller/controld/config"
)

func TestWhatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for says, cfg := range map[string]config.Config{
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
