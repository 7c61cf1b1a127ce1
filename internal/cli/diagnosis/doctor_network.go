package diagnosis

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/operate/doctor"
)

// daemonsHere asks the daemons of this machine, whatever else this user may ask.
func daemonsHere() *remote.Remote {
	nobody := func(string) string { return "" }
	return &remote.Remote{Run: remote.RunDir, Getenv: nobody, Alive: remote.Accepts, Mine: remote.Writable, Login: func() string { return "" }}
}

// admission is who gets into the network of this machine's daemons; false where none of them answers.
func admission(ctx context.Context, r *remote.Remote) (n doctor.Network, known bool) {
	for _, socket := range []string{"controld.sock", "hostd.sock", "routerd.sock"} {
		if _, err := os.Stat(filepath.Join(r.Run, socket)); err == nil {
			known = true
		}
	}
	if !known { // a lab is none of this machine's
		return n, false
	}
	f, err := askFindings(ctx, r)
	if err != nil {
		return n, false
	}
	if f.status != nil {
		n.Trust = f.status.Trust
	}
	for _, p := range f.merged().Problems {
		if k := health.Kind(p.Kind); k == health.NetworkOpen || k == health.StoreClear {
			found, cost, _ := strings.Cut(p.What, ": ")
			n.Exposed = append(n.Exposed, doctor.Hole{Found: found, Cost: cost, Do: p.Next})
		}
	}
	return n, true
}
