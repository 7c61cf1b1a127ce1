package longpath

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A lab may stay up behind the demo (--keep): what a step has changed is as it was then, however the step ended.

// endsWithin is how long that may take. A controller and its agents take a few seconds to begin.
const endsWithin = 30 * time.Second

// A way is a host's route to one address as it was before the demo.
type way struct {
	host string
	to   netip.Addr
	was  string // by `ip route show exact`; "": there was none
}

// ip is the command of the address's family: `ip` itself takes IPv4 where it is not told.
func (w way) ip(argv ...string) []string {
	family := "-4"
	if w.to.Is6() {
		family = "-6"
	}
	return append([]string{"ip", family, "route"}, argv...)
}

func (w way) prefix() string { return netip.PrefixFrom(w.to, w.to.BitLen()).String() }

// back is the command that has the route as it was.
func (w way) back() []string {
	if fields := strings.Fields(w.was); len(fields) > 0 {
		return w.ip(append([]string{"replace"}, fields...)...)
	}
	return w.ip("del", w.prefix())
}

// note remembers a route before it is changed for the first time.
func (s *show) note(ctx context.Context, host string, to netip.Addr) error {
	w := way{host: host, to: to}
	if slices.ContainsFunc(s.routes, func(o way) bool { return o.host == host && o.to == to }) {
		return nil
	}
	out, err := s.lab.Output(ctx, host, w.ip("show", "exact", w.prefix())...)
	if err != nil {
		return fmt.Errorf("route of %s to %v: %w: %s", host, to, err, out)
	}
	w.was = string(out)
	s.routes = append(s.routes, w)
	return nil
}

// revival starts what a step has killed, once: by now, or by the deferred end where the step did not come to that.
func revival(start func(context.Context) error) (now func(context.Context) error, end func()) {
	begun := false
	now = func(ctx context.Context) error {
		begun = true
		return start(ctx)
	}
	return now, func() {
		if begun {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), endsWithin) // the step's may be over
		defer cancel()
		_ = now(ctx) // the step has failed, and says why
	}
}
