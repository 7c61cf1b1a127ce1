package gate

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/trust"
)

// Roles of actors that are none of members.
const (
	RoleLocal           = "local"           // a user of the controller's machine, on its socket
	RoleAnybody         = "anybody"         // of an open network: the address is all that is known
	RoleUnauthenticated = "unauthenticated" // no member of a network with keys
)

// HandedOn marks what a standby passes to the leader. Whoever gets it and does not lead passes it no further.
const HandedOn = "Scaffold-Handed-On"

// SeenAt is with it: the address that the call came from.
const SeenAt = "Scaffold-Seen-At"

// A connection is what is known of a call without its credential.
type connection struct {
	address string
	uid     *uint32
	user    string // of a Unix socket
	handed  string // the controller that handed the call on, as it says
	seen    string // and from where,
	asked   string // and which local user of its machine, or of a host's, asked
	order   string // the number of what is ordered
}

type connectionKey struct{}

// WithConnection notes where a call comes from, for the history.
func WithConnection(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connection{handed: r.Header.Get(HandedOn), seen: r.Header.Get(SeenAt), asked: r.Header.Get(api.LocalUser), order: api.OrderOf(r.URL.Path, r.Header)}
		if who, ok := api.CallerOf(r.Context()); ok {
			c.uid, c.user = proto.Uint32(who.UID), who.Name()
		} else if strings.Contains(r.RemoteAddr, ":") {
			c.address = r.RemoteAddr
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), connectionKey{}, c)))
	})
}

// OrderOf is the number of what is ordered; "" where it has none.
func OrderOf(ctx context.Context) string {
	c, _ := ctx.Value(connectionKey{}).(connection)
	return c.order
}

// ActorOf is who makes a call. What comes by no connection is the doing of the controller itself.
func ActorOf(ctx context.Context, self string) *apiv1.Actor {
	c, ok := ctx.Value(connectionKey{}).(connection)
	if !ok {
		return &apiv1.Actor{Role: string(trust.Controller), Name: self}
	}
	return actor(PeerOf(ctx), c)
}

// actor puts together what the credential and the connection show. What a caller says of others counts only of
// controllers, and in an open network, where nothing can be known.
func actor(p Peer, c connection) *apiv1.Actor {
	a := &apiv1.Actor{Address: events.Printable(events.Shortened(c.address))}
	if p.Handed && c.handed != "" {
		a.Via, a.Address = events.Printable(events.Shortened(c.handed)), events.Printable(events.Shortened(c.seen))
	}
	switch {
	case p.Unauthenticated != nil:
		a.Role = RoleUnauthenticated
	case !p.Local:
		a.Role, a.Name = string(p.Role), p.Name
		if p.Role == trust.Host {
			a.User = events.Printable(events.Shortened(c.asked))
		}
	case a.Via != "" && c.asked != "":
		a.Role, a.Name, a.Address = RoleLocal, events.Printable(events.Shortened(c.asked)), ""
	case c.uid != nil:
		a.Role, a.Name, a.Uid, a.Address = RoleLocal, c.user, c.uid, ""
	default:
		a.Role = RoleAnybody
	}
	return a
}
