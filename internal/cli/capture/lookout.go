package capture

import (
	"context"
	"net/netip"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/packet/capture"
)

// askAgain is how often at most a host's daemon is asked for its flows.
const askAgain = 100 * time.Millisecond

// A lookout watches one interface.
type lookout struct {
	w      *watch
	host   string
	local  apiv1connect.LocalClient
	follow *capture.Follower
	tap    *capture.Tap
	asked  time.Time
}

func (l *lookout) run(ctx context.Context) error {
	defer func() {
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		l.w.lost += l.tap.Lost()
		l.tap.Close()
	}()
	l.ask(ctx)
	for {
		p, err := l.tap.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if h, ok := capture.Parse(p); ok {
			v := l.follow.Take(h)
			if v.Unknown && time.Since(l.asked) > askAgain { // of a flow that began or moved unseen
				l.ask(ctx)
				v = l.follow.Take(h)
			}
			if err := l.w.take(l.host, p, h, v); v.Mine && err != nil {
				return err
			}
		}
	}
}

// ask has the host's daemon tell of the service's flows. One that is away tells nothing, and the capture goes on.
func (l *lookout) ask(ctx context.Context) {
	all, err := remote.Ask(ctx, l.local.ListFlows, &apiv1.ListFlowsRequest{Service: l.w.service.String()}, "", "")
	l.asked = time.Now()
	if err != nil {
		return
	}
	known := make([]capture.Known, 0, len(all.Flows))
	for _, f := range all.Flows {
		k := capture.Known{Server: f.Role == "server"}
		if a, err := netip.ParseAddrPort(f.WireLocal); err == nil {
			k.Local = a.Addr()
		}
		if a, err := netip.ParseAddrPort(f.WirePeer); err == nil {
			k.Peer = a.Addr()
		}
		known = append(known, k)
	}
	l.follow.Learn(known)
}
