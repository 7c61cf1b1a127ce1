package hostd

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"regexp"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/host/guests"
	"scaffold.dev/scaffold/sid"
)

// codes are what callers are told of refusals.
var codes = map[guests.Kind]connect.Code{
	guests.Invalid: connect.CodeInvalidArgument, guests.Missing: connect.CodeNotFound, guests.Taken: connect.CodeAlreadyExists,
	guests.Denied: connect.CodePermissionDenied, guests.Unready: connect.CodeFailedPrecondition,
}

// ofGuest is a refusal as callers get it.
func ofGuest(err error) error {
	var r *guests.Refusal
	if errors.As(err, &r) {
		return connect.NewError(codes[r.Kind], r.Unwrap())
	}
	return err
}

// guestName is what stands in paths and lists. Runtimes call containers by up to 64 characters.
var guestName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// AddGuest makes this host the edge of a network namespace.
func (l *local) AddGuest(ctx context.Context, req *connect.Request[apiv1.AddGuestRequest]) (*connect.Response[apiv1.Guest], error) {
	name, path := req.Msg.Name, req.Msg.Netns
	if !guestName.MatchString(name) {
		return nil, invalid("guest name %.120q: want a letter or digit, then up to 99 of them, dots, dashes or underscores", name)
	}
	if !filepath.IsAbs(path) {
		return nil, invalid("namespace %.120q: want its absolute path", path)
	}
	var edge *host.Edge
	if !l.d.call(ctx, func() { edge = l.d.edge }) {
		return nil, errLeaving
	}
	if edge != nil {
		if err := edge.ReadyForGuests(); err != nil { // beside the loop: it takes a while the first time
			return nil, err
		}
	}
	serves, err := l.served(ctx, req.Msg.Serve)
	if err != nil {
		return nil, err
	}
	var resp *apiv1.Guest
	ok := l.d.call(ctx, func() {
		resp, err = l.d.guests.Add(name, filepath.Clean(path), req.Msg.Serve, serves)
	})
	if !ok {
		return nil, errLeaving
	}
	if err != nil {
		return nil, ofGuest(err)
	}
	return connect.NewResponse(resp), nil
}

// served is the address of what a guest's wildcard listeners are to serve, the zero one for nothing.
func (l *local) served(ctx context.Context, service string) (netip.Addr, error) {
	if service == "" {
		return netip.Addr{}, nil
	}
	r, err := l.LookUp(ctx, connect.NewRequest(&apiv1.LookUpRequest{Name: service}))
	if err != nil {
		return netip.Addr{}, err
	}
	at, err := netip.ParseAddr(r.Msg.Address)
	if err != nil || !l.d.names.Space().Services.Contains(at) {
		return netip.Addr{}, invalid("%q is no service", service)
	}
	return at, nil
}

// RemoveGuest ends it.
func (l *local) RemoveGuest(ctx context.Context, req *connect.Request[apiv1.RemoveGuestRequest]) (*connect.Response[apiv1.RemoveGuestResponse], error) {
	var err error
	if !l.d.call(ctx, func() { err = l.d.guests.Remove(req.Msg.Name) }) {
		return nil, errLeaving
	}
	if err != nil {
		return nil, ofGuest(err)
	}
	return connect.NewResponse(&apiv1.RemoveGuestResponse{}), nil
}

// ListGuests tells them in the order in which they came.
func (l *local) ListGuests(ctx context.Context, _ *connect.Request[apiv1.ListGuestsRequest]) (*connect.Response[apiv1.ListGuestsResponse], error) {
	resp := &apiv1.ListGuestsResponse{}
	var edge *host.Edge
	at := map[uint16]*apiv1.Guest{}
	ok := l.d.call(ctx, func() {
		edge = l.d.edge
		for _, g := range l.d.guests.List() {
			at[g.Number] = g.Guest
			resp.Guests = append(resp.Guests, g.Guest)
		}
	})
	if !ok {
		return nil, errLeaving
	}
	if edge != nil && len(at) > 0 {
		err := edge.Walk(func(f host.Flow) bool { // beside the loop: there may be many
			if g := at[f.Tuple.Guest]; g != nil && f.State != host.Closing {
				g.Flows++
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return connect.NewResponse(resp), nil
}

// sockets lists those of this host and its guests, in the loop.
func (l *local) sockets(ctx context.Context) socketLister {
	return func(p sid.Proto, states uint32, f func(sockets.DiagSocket)) {
		l.d.call(ctx, func() { spaces{l.d}.Each(p, states, 0, f) }) //nolint:errcheck // whose it is stays open
	}
}
