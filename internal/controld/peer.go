package controld

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

	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/internal/trust"
)

// A peer is who makes a call, as its connection shows (docs/protocol.md §5.5).
type peer struct {
	trust.Identity                   // of a member; of a stranger its key alone, where it showed one
	leaf           *x509.Certificate // that it showed
	local          bool              // on our Unix socket, or in an open network: it may do all
	stranger       error             // why it is no member
	handed         bool              // another controller handed its call on, and says where it came from
}

// rules reports whether it may do what administrators do. A controller passes on what it has checked itself.
func (p peer) rules() bool {
	return p.local || p.stranger == nil && (p.Role == trust.Admin || p.Role == trust.Controller)
}

// is reports whether it is the member, or may speak for it.
func (p peer) is(role trust.Role, name string) bool {
	return p.local || p.stranger == nil && (p.Role == role && p.Name == name || p.Role == trust.Controller)
}

func (p peer) String() string {
	switch {
	case p.local:
		return "local"
	case p.stranger != nil:
		return "a stranger"
	}
	return p.Identity.String()
}

type peerKey struct{}

// peerOf is who makes the call. Calls that came by no gate are our own.
func peerOf(ctx context.Context) peer {
	if p, ok := ctx.Value(peerKey{}).(peer); ok {
		return p
	}
	return peer{local: true, handed: true}
}

// What strangers are told.
var (
	errInTheClear = errors.New("this network has trust: keys and nothing is said in the clear: join it with a token, `scaffold join --token T ADDRESS` on a host or router, `scaffold login --token T ADDRESS` to operate it (`scaffold token create` where the controller runs makes one)")
	errNoMember   = errors.New("this is no member of the network: join it with a token, `scaffold join --token T ADDRESS` (`scaffold token create` where the controller runs makes one)")
)

// identify finds out who makes a request.
func (g *gate) identify(r *http.Request) peer {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); ok && at.Name == g.socket {
		return peer{local: true}
	}
	if r.TLS == nil {
		return peer{stranger: errInTheClear}
	}
	if len(r.TLS.PeerCertificates) == 0 {
		return peer{stranger: errNoMember}
	}
	p := g.member(r.TLS.PeerCertificates[0])
	if whom := r.Header.Get(onBehalf); whom != "" && p.stranger == nil && p.Role == trust.Controller {
		p = g.behind(whom)
		p.handed = true
	}
	return p
}

// onBehalf is in calls that a standby hands on: whose they are. It counts from controllers alone.
const onBehalf = "Scaffold-On-Behalf"

// header says to the leader who makes a call.
func (p peer) header() string {
	switch {
	case p.local:
		return "local"
	case p.leaf == nil:
		return "stranger"
	}
	return base64.StdEncoding.EncodeToString(p.leaf.Raw)
}

// behind is who made a call that another controller handed on. Its certificate is looked at again: the leader knows of
// revocations first.
func (g *gate) behind(whom string) peer {
	if whom == "local" {
		return peer{local: true}
	}
	der, err := base64.StdEncoding.DecodeString(whom)
	if err != nil {
		return peer{stranger: errNoMember}
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return peer{stranger: errNoMember}
	}
	return g.member(leaf)
}

// member reads a certificate. TLS has shown that the peer has its key.
func (g *gate) member(leaf *x509.Certificate) peer {
	key, _ := leaf.PublicKey.(ed25519.PublicKey)
	stranger := peer{Identity: trust.Identity{Key: key}}
	if len(leaf.URIs) == 0 { // the joiner's own
		stranger.stranger, stranger.leaf = errNoMember, leaf
		return stranger
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
		stranger.stranger = fmt.Errorf("this is no member of the network any more: the key %s, by which it was certified, was retired %v ago: %s", retired[by].ID, since(retired[by].At), trust.ComeBack(leaf))
	case err != nil:
		stranger.stranger = fmt.Errorf("this is no member of the network: %w", err)
	case gone:
		stranger.stranger = wasRevoked(revoked)
	default:
		return peer{Identity: who, leaf: leaf}
	}
	return stranger
}

// A revokedError is errRevoked, for the one whose key it was.
type revokedError string

func (e revokedError) Error() string        { return string(e) }
func (e revokedError) Is(target error) bool { return target == errRevoked }

func wasRevoked(r store.Revoked) error {
	if r.Replaced {
		return revokedError(fmt.Sprintf("the key of this %s is that of before: %s has another one since %s: was its directory copied, or restored? `scaffold leave --offline` here, and a new token, make it a member of another name", r.Role, r.Name, since(r.At)))
	}
	remove := "leave"
	if r.Role == string(trust.Admin) {
		remove = "logout"
	}
	return revokedError(fmt.Sprintf("the key of this %s was revoked %s ago (it was forgotten as %s): `scaffold %s` here removes it, and a new token lets it join with a new one", r.Role, since(r.At), r.Name, remove))
}

// since says how long ago a second was, for people.
func since(unix int64) time.Duration { return time.Since(time.Unix(unix, 0)).Round(time.Second) }
