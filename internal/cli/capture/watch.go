package capture

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/packet/capture"
	"scaffold.dev/scaffold/sid"
)

// A watch is a capture under way, at one host or at several of a lab.
type watch struct {
	space   sid.Space
	service sid.ServiceID
	admin   apiv1connect.AdminClient
	write   func(at string, p capture.Packet, h capture.Headers, v capture.Verdict) error
	left    int // packets; negative: no end
	done    context.CancelFunc

	mu    sync.Mutex // of all below, and of write
	names capture.Names
	seen  map[netip.Addr]string
	lost  uint32
}

// open watches all uplinks of a host.
func (w *watch) open(ctx context.Context, group *errgroup.Group, node remote.NodeSocket, in func(func() error) error) error {
	client, base, err := api.Dial(node.Path)
	if err != nil {
		return exit.Fail(exit.Usage, "", err)
	}
	local := apiv1connect.NewLocalClient(client, base)
	status, err := remote.Ask(ctx, local.GetHostStatus, &apiv1.GetHostStatusRequest{}, node.Path, "")
	if err != nil {
		return err
	}
	for _, u := range status.Uplinks {
		var tap *capture.Tap
		err := in(func() (err error) { tap, err = capture.Open(u.Interface, w.space, snap); return err })
		if errors.Is(err, os.ErrPermission) {
			return exit.Failf(exit.Missing, "try again with sudo", "watching %s needs root", u.Interface)
		}
		if err != nil {
			return err
		}
		l := &lookout{w: w, host: status.Name, local: local, follow: capture.NewFollower(w.space, w.service), tap: tap}
		group.Go(func() error { return l.run(ctx) })
	}
	return nil
}

// take writes a packet of the service.
func (w *watch) take(at string, p capture.Packet, h capture.Headers, v capture.Verdict) error {
	if !v.Mine {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 {
		return nil
	}
	w.seen[h.Src], w.seen[h.Dst] = w.names.Of(h.Src, v.Src), w.names.Of(h.Dst, v.Dst)
	if w.left--; w.left == 0 {
		defer w.done()
	}
	return w.write(at, p, h, v)
}

// rename asks again and again which host is where.
func (w *watch) rename(ctx context.Context) {
	tick := time.NewTicker(askNames)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = w.askHosts(ctx) // the names of before are good enough
		case <-ctx.Done():
			return
		}
	}
}

func (w *watch) askHosts(ctx context.Context) error {
	list, err := remote.Ask(ctx, w.admin.ListHosts, &apiv1.ListHostsRequest{}, "", "")
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range list.Hosts {
		for _, p := range h.Places {
			if l, err := netip.ParsePrefix(p.Locator); err == nil {
				w.names.Hosts[sid.LocatorOf(l.Addr())] = h.Name
			}
		}
	}
	return nil
}

// save writes the names of all addresses that were seen.
func (w *watch) save(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	addresses := make([]netip.Addr, 0, len(w.seen))
	for a := range w.seen {
		addresses = append(addresses, a)
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	for _, a := range addresses {
		if _, err := fmt.Fprintf(f, "%v\t%s\n", a, w.seen[a]); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}
