// Package gate knows who makes each call, by the certificate or the socket that it comes with, and who may call what.
package gate

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/trust"
)

// A Gate knows who makes each call and lets through what he may. A network that is open has none. It is used by
// all goroutines.
type Gate struct {
	server  *trust.Server
	refused func(context.Context, string, error) // who it was is in the context
	socket  string                               // the Unix socket at which whoever can open it may do all

	mu      sync.Mutex
	roots   *trust.Roots
	retired []store.RetiredKey         // of the network, which count no more
	revoked map[string]store.Revoked   // by key
	grants  map[string]grant           // the last of each key
	sweepAt int                        // of how many grants those that count no more are forgotten
	calls   map[string]map[*entry]bool // that run, by key
}

// An entry is a call that runs.
type entry struct{ end context.CancelCauseFunc }

// New makes one that knows no key yet and lets nobody in. refused is told of calls that it lets not through.
func New(name, socket string, refused func(context.Context, string, error)) *Gate {
	return &Gate{
		server: trust.NewServer(nil, name), refused: refused, socket: socket,
		revoked: make(map[string]store.Revoked), grants: make(map[string]grant), calls: make(map[string]map[*entry]bool),
	}
}

// Certify has the gate know members by the network's keys, and show a certificate of the one that certifies, or of the
// second to those who know no other. Who does not say what he knows knows the older one.
func (g *Gate) Certify(seed []byte, second store.Authority, network string) (*trust.Authority, error) {
	by, err := trust.NewAuthority(seed, network)
	if err != nil {
		return nil, err
	}
	known, show := [][]byte{by.Certificate()}, []*trust.Authority{by}
	if len(second.Seed) > 0 {
		other, err := trust.NewAuthority(second.Seed, network)
		if err != nil {
			return nil, err
		}
		known = slices.Insert(known, 0, other.Certificate())
		if show = append(show, other); !second.Next {
			slices.Reverse(show)
		}
	}
	roots, err := trust.NewRoots(known...)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.roots, g.retired = roots, second.Retired
	g.server.Certify(show...)
	return by, nil
}

// Ready reports whether it has the network's key.
func (g *Gate) Ready() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.roots != nil
}

func (g *Gate) known() *trust.Roots {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.roots
}

// Client is how this controller calls others; nil: in the clear.
func (g *Gate) Client() *tls.Config {
	if g == nil {
		return nil
	}
	return g.server.Client(g.known)
}

// Secure makes TLS of all listeners but the Unix socket of the one who rules here.
func (g *Gate) Secure(listeners []net.Listener) {
	for i, l := range listeners {
		if at, ok := l.Addr().(*net.UnixAddr); !ok || at.Name != g.socket {
			listeners[i] = api.Secure(l, g.server.Config())
		}
	}
}

// Wrap lets through what the caller may do, and tells the others why not.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	errs := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := g.identify(r)
		if err := mayCall(p, r.URL.Path); err != nil {
			g.refused(context.WithValue(r.Context(), peerKey{}, p), r.URL.Path, err)
			if errs.IsSupported(r) {
				_ = errs.Write(w, r, err) // a caller who hangs up needs no answer
				return
			}
			http.Error(w, errors.Unwrap(err).Error(), http.StatusForbidden)
			return
		}
		ctx, leave := g.enter(context.WithValue(r.Context(), peerKey{}, p), p)
		defer leave()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// enter notes that a call runs, so that it ends when the caller's key is revoked.
func (g *Gate) enter(ctx context.Context, p Peer) (context.Context, func()) {
	if p.Local || p.Unauthenticated != nil || p.Key == nil {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	e, key := &entry{end}, string(p.Key)
	g.mu.Lock()
	defer g.mu.Unlock()
	if r, gone := g.revoked[key]; gone { // meanwhile
		end(WasRevoked(r))
	}
	if g.calls[key] == nil {
		g.calls[key] = make(map[*entry]bool)
	}
	g.calls[key][e] = true
	return ctx, func() {
		end(nil)
		g.mu.Lock()
		defer g.mu.Unlock()
		if delete(g.calls[key], e); len(g.calls[key]) == 0 {
			delete(g.calls, key)
		}
	}
}

// Revoke ends what the holder of a key has begun, and lets him begin nothing more. It returns how many calls ended.
func (g *Gate) Revoke(r store.Revoked) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.revoked[string(r.Key)] = r
	for e := range g.calls[string(r.Key)] {
		e.end(WasRevoked(r))
	}
	return len(g.calls[string(r.Key)])
}

// Pin is that of the key that certifies.
func (g *Gate) Pin() trust.Pin {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.roots.Pin()
}

// Certifying is the id of the key that certifies now; "" in an open network, and as long as it is not known.
func (g *Gate) Certifying() string {
	if g == nil || !g.Ready() {
		return ""
	}
	return g.Pin().String()
}

// A grant is a credential that this controller has given to the holder of a key.
type grant struct {
	who   trust.Identity
	by    string // id of the network's key
	until time.Time
}

// leastGrants is how many grants there may be before any is forgotten.
const leastGrants = 1024

// Granted notes a credential.
func (g *Gate) Granted(who trust.Identity, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, by := time.Now(), g.roots.Pin().String()
	if len(g.grants) >= g.sweepAt { // members come and go, and change their keys
		maps.DeleteFunc(g.grants, func(_ string, old grant) bool { return old.by != by || !now.Before(old.until) })
		g.sweepAt = max(leastGrants, 2*len(g.grants))
	}
	g.grants[string(who.Key)] = grant{who, by, until}
}

// renewed is who shows a certificate whose time is over, or that of its key: a connection shows what it was made with, and
// the holder of the key may have had another one since.
func (g *Gate) renewed(leaf *x509.Certificate, key []byte) (trust.Identity, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	have, ok := g.grants[string(key)]
	return have.who, ok && g.roots != nil && have.by == g.roots.Pin().String() && time.Now().Before(have.until) && trust.Names(leaf, have.who)
}

// Retired are the ids of those that count no more.
func (g *Gate) Retired() (ids []string) {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.retired {
		ids = append(ids, r.ID)
	}
	return ids
}

// Roots are the certificates of the network's keys.
func (g *Gate) Roots() [][]byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.roots.DER()
}

// Revoked are the revoked keys, those of long ago first.
func (g *Gate) Revoked() []store.Revoked {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Values(g.revoked), func(a, b store.Revoked) int {
		return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.Name, b.Name))
	})
}

// IsRevoked returns when a key was, if it was.
func (g *Gate) IsRevoked(key []byte) (store.Revoked, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.revoked[string(key)]
	return r, ok
}
