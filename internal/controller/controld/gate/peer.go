package gate

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/trust"
)

// A Peer is who makes a call, as its connection shows (docs/protocol.md §5.5).
type Peer struct {
	trust.Identity                    // of a member; of others their key alone, where they showed one
	Leaf            *x509.Certificate // that it showed
	Local           bool              // on our Unix socket, or in an open network: it may do all
	Unauthenticated error             // why it is no member; nil of members
	Handed          bool              // another controller handed its call on, and says where it came from
}

// Rules reports whether it may do what administrators do. A controller passes on what it has checked itself.
func (p Peer) Rules() bool {
	return p.Local || p.Unauthenticated == nil && (p.Role == trust.Admin || p.Role == trust.Controller)
}

// Is reports whether it is the member, or may speak for it.
func (p Peer) Is(role trust.Role, name string) bool {
	return p.Local || p.Unauthenticated == nil && (p.Role == role && p.Name == name || p.Role == trust.Controller)
}

func (p Peer) String() string {
	switch {
	case p.Local:
		return "local"
	case p.Unauthenticated != nil:
		return "no member"
	}
	return p.Identity.String()
}

type peerKey struct{}

// PeerOf is who makes the call. Calls that came by no gate are our own.
func PeerOf(ctx context.Context) Peer {
	if p, ok := ctx.Value(peerKey{}).(Peer); ok {
		return p
	}
	return Peer{Local: true, Handed: true}
}

// What those who are no members are told.
var (
	errInTheClear = errors.New("this network has trust: keys and nothing is said in the clear: join it with a token, `scaffold join --token T ADDRESS` on a host or router, `scaffold login --token T ADDRESS` to operate it (`scaffold token create` where the controller runs makes one)")
	errNoMember   = errors.New("this is no member of the network: join it with a token, `scaffold join --token T ADDRESS` (`scaffold token create` where the controller runs makes one)")
)

// identify finds out who makes a request.
func (g *Gate) identify(r *http.Request) Peer {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); ok && at.Name == g.socket {
		return Peer{Local: true}
	}
	if r.TLS == nil {
		return Peer{Unauthenticated: errInTheClear}
	}
	if len(r.TLS.PeerCertificates) == 0 {
		return Peer{Unauthenticated: errNoMember}
	}
	p := g.member(r.TLS.PeerCertificates[0])
	if whom := r.Header.Get(OnBehalf); whom != "" && p.Unauthenticated == nil && p.Role == trust.Controller {
		p = g.behind(whom)
		p.Handed = true
	}
	return p
}

// OnBehalf is in calls that a standby hands on: whose they are. It counts from controllers alone.
const OnBehalf = "Scaffold-On-Behalf"

// Header says to the leader who makes a call.
func (p Peer) Header() string {
	switch {
	case p.Local:
		return "local"
	case p.Leaf == nil:
		return "unauthenticated"
	}
	return base64.StdEncoding.EncodeToString(p.Leaf.Raw)
}

// behind is who made a call that another controller handed on. Its certificate is looked at again: the leader knows of
// revocations first.
func (g *Gate) behind(whom string) Peer {
	if whom == "local" {
		return Peer{Local: true}
	}
	der, err := base64.StdEncoding.DecodeString(whom)
	if err != nil {
		return Peer{Unauthenticated: errNoMember}
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return Peer{Unauthenticated: errNoMember}
	}
	return g.member(leaf)
}

// member reads a certificate. TLS has shown that the peer has its key.
func (g *Gate) member(leaf *x509.Certificate) Peer {
	key, _ := leaf.PublicKey.(ed25519.PublicKey)
	other := Peer{Identity: trust.Identity{Key: key}}
	if len(leaf.URIs) == 0 { // the joiner's own
		other.Unauthenticated, other.Leaf = errNoMember, leaf
		return other
	}
	g.mu.Lock()
	roots, retired, revoked, gone := g.roots, g.retired, g.revoked[string(key)], g.revoked[string(key)].Key != nil
	g.mu.Unlock()
	who, err := roots.Verify(leaf, x509.ExtKeyUsageClientAuth, time.Now())
	if errors.Is(err, trust.ErrOtherNetwork) || errors.Is(err, trust.ErrExpired) {
		if again, ok := g.renewed(leaf, key); ok {
			who, err = again, nil
		}
	}
	by := slices.IndexFunc(retired, func(r store.RetiredKey) bool { return r.ID == trust.IssuerOf(leaf) })
	switch {
	case errors.Is(err, trust.ErrOtherNetwork) && by >= 0:
		other.Unauthenticated = fmt.Errorf("this is no member of the network any more: the key %s, by which it was certified, was retired %v ago: %s", retired[by].ID, Since(retired[by].At), trust.ComeBack(leaf))
	case err != nil:
		other.Unauthenticated = fmt.Errorf("this is no member of the network: %w", err)
	case gone:
		other.Unauthenticated = WasRevoked(revoked)
	default:
		return Peer{Identity: who, Leaf: leaf}
	}
	return other
}

// A revokedError is session.ErrRevoked, for the one whose key it was.
type revokedError string

func (e revokedError) Error() string        { return string(e) }
func (e revokedError) Is(target error) bool { return target == session.ErrRevoked }

// WasRevoked says to the one whose key it was that it is revoked, and what to do.
func WasRevoked(r store.Revoked) error {
	if r.Replaced {
		return revokedError(fmt.Sprintf("the key of this %s is that of before: %s has another one since %s: was its directory copied, or restored? `scaffold leave --offline` here, and a new token, make it a member of another name", r.Role, r.Name, Since(r.At)))
	}
	remove := "leave"
	if r.Role == string(trust.Admin) {
		remove = "logout"
	}
	return revokedError(fmt.Sprintf("the key of this %s was revoked %s ago (it was forgotten as %s): `scaffold %s` here removes it, and a new token lets it join with a new one", r.Role, Since(r.At), r.Name, remove))
}

// Since says how long ago a second was, for people.
func Since(unix int64) time.Duration { return time.Since(time.Unix(unix, 0)).Round(time.Second) }
