// Package members knows who belongs to a network with keys: tokens, credentials, revocations, the keys of members and of
// the network itself (docs/protocol.md §5.5).
package members

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/trust"
)

// Members are those of a network with keys: who they are, what lets others become members, and the keys by which all of
// them are known. An open network has none. The loop owns them.
type Members struct {
	cfg       Config
	members   map[memberName]store.Member
	tokens    map[string]store.Token // by id
	refusals  events.Meter           // of what is told of those who were refused
	key       ed25519.PrivateKey     // the network's; nil where it is open
	authority *trust.Authority       // of the key
	second    store.Authority        // the network's second key, while there is one
	edition   uint64                 // of the network's keys

	gate    *gate.Gate // nil where the network is open
	network Network
	orders  Orders
	loop    Loop
	saver   Saver
	events  Events
	refused Counter
	log     *slog.Logger
}

// A Config is what of the controller's concerns members.
type Config struct {
	Network, Domain, Name, Trust string
	CredentialFor, CertifyFor    time.Duration // how long credentials are valid, and certificates of locators at most
	KeyOverlap                   time.Duration // how long a member's key of before counts beside the one that took its place
	Announce                     time.Duration // how long the network's next key is told before it certifies
}

// A Network is what is to be known of the hosts and routers of one, and how they are told.
type Network interface {
	HostKey(name string) (key []byte, known bool)
	HasRouter(name string) bool
	HasAgent(name string) bool           // of boost
	Needed(router string) error          // who would lose it
	Forget(role trust.Role, name string) // a host or router, for good
	Unaware() string                     // a host that is here and knows no successions of keys
	Unheard() []string                   // hosts that are here and do not know the network's keys of now
	Settling() bool                      // it is not known yet who is here
	ReachedAt() []string                 // addresses of the controllers
	TellKeys()
	TellRevoked([]*apiv1.Revocation)
}

// Orders change what is stored: check runs in the loop, what it says is saved, and its effect runs in the loop then.
type Orders interface {
	Do(ctx context.Context, check func() (orders.Change, error)) error
	Await(ctx context.Context) // until the routers have applied what changed
}

// A Loop runs functions in the goroutine that owns the members.
type Loop interface {
	Ask(context.Context, func()) error
	Post(func()) bool
	After(time.Duration, func())
	During(context.Context, time.Duration, func()) // nothing, and nothing held, once the context has ended
}

// A Saver keeps records until they are stored.
type Saver interface {
	Later(...store.Change)
}

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// A Counter counts.
type Counter interface {
	Inc(values ...string)
}

// Surroundings are what members live among.
type Surroundings struct {
	Gate    *gate.Gate // nil where the network is open
	Network Network
	Orders  Orders
	Loop    Loop
	Saver   Saver
	Events  Events
	Refused Counter // tokens
	Log     *slog.Logger
}

// New makes the members of a network that has none.
func New(cfg Config, s Surroundings) *Members {
	return &Members{cfg: cfg, members: make(map[memberName]store.Member), tokens: make(map[string]store.Token), gate: s.Gate,
		network: s.Network, orders: s.Orders, loop: s.Loop, saver: s.Saver, events: s.Events, refused: s.Refused, log: s.Log}
}

// API is the service by which members join, and are let in.
func (x *Members) API() *Trust { return &Trust{x} }

// Key is the one that certifies; nil in an open network.
func (x *Members) Key() ed25519.PrivateKey { return x.key }

// Edition counts how often the network's keys changed.
func (x *Members) Edition() uint64 { return x.edition }

// Member is the one of a name.
func (x *Members) Member(role trust.Role, name string) (store.Member, bool) {
	m, known := x.members[memberName{string(role), name}]
	return m, known
}

// ask runs f in the loop and waits for it.
func (x *Members) ask(ctx context.Context, f func()) error {
	if err := x.loop.Ask(ctx, f); err != nil {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return nil
}

// get runs a question in the loop.
func get[T any](ctx context.Context, x *Members, f func() (*T, error)) (*connect.Response[T], error) {
	var answer *T
	var err error
	if asked := x.ask(ctx, func() { answer, err = f() }); asked != nil {
		return nil, asked
	}
	if err != nil {
		if known := new(connect.Error); !errors.As(err, &known) {
			err = connect.NewError(connect.CodeUnavailable, err)
		}
		return nil, err
	}
	return connect.NewResponse(answer), nil
}

// conflict is the answer to what cannot be as things are.
func conflict(format string, args ...any) error {
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("refused: "+format, args...))
}
