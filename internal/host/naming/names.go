package naming

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/miekg/dns"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/sid"
)

const (
	resolveLimit  = 2 * time.Second
	negativeTTL   = time.Second
	staleTTL      = 1    // seconds: what a program may keep of an answer that nobody could confirm
	defaultTTL    = 5    // seconds, where the controller gives none
	maxNames      = 8192 // kept in memory and on disk
	maxMisses     = 1024 // beside them, in memory: any program may ask for names that nobody has
	defaultDomain = "svc"
)

// A Name is one answer of the controller, or that there is none.
type Name struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	TTL     uint32     `json:"ttl"`
	Missing bool       `json:"-"`
	Until   time.Time  `json:"-"` // after it the controller is asked again
}

// Saved is what the next daemon begins with.
type Saved struct {
	Domain string          `json:"domain"`
	Names  map[string]Name `json:"names"`
}

// A Config is what names are given, and whom they ask.
type Config struct {
	Log        *slog.Logger
	Listen     []string            // addresses to answer at
	ResolvConf string              // whom to ask for names of other domains; "": nobody
	Controller func() *http.Client // nil where there is no way to it now
	Load       func(*Saved) bool
	Save       func(Saved) error
	// Learn hears the policies of services that are asked for, and returns when it has.
	Learn    func(ctx context.Context, service netip.Addr, p *apiv1.Policy)
	Answered func(rcode string) // for each answer
}

// ErrUnknown is the controller's word that there is no such name.
var ErrUnknown = errors.New("no such name")

// A Names answers DNS. It has its own goroutines, those of the DNS servers; mu guards all.
type Names struct {
	ctx context.Context
	cfg Config

	mu     sync.Mutex
	domain string
	plan   sid.Space
	known  map[string]Name // by question: a name, or an address
	misses map[string]Name // there is none; apart, so that they push out nothing that there is
	saved  *time.Timer

	awaited map[string]*awaited // that are with the controller

	servers []*dns.Server
	forward []string
}

// New begins with what the daemon before has saved. What it asks ends with ctx.
func New(ctx context.Context, cfg Config) *Names {
	n := &Names{ctx: ctx, cfg: cfg, domain: defaultDomain, known: map[string]Name{}, misses: map[string]Name{}, awaited: map[string]*awaited{}, forward: upstreams(cfg.ResolvConf, cfg.Listen)}
	var saved Saved
	if n.cfg.Load(&saved) && saved.Names != nil {
		n.known = saved.Names
		if saved.Domain != "" {
			n.domain = saved.Domain
		}
	}
	return n
}

// SetNetwork says which names and addresses are the network's.
func (n *Names) SetNetwork(domain string, plan sid.Space) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.plan = plan
	if domain = strings.Trim(strings.ToLower(domain), "."); domain != "" {
		n.domain = domain
	}
}

// Suffix is the domain as DNS writes it.
func (n *Names) Suffix() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return dns.Fqdn(n.domain)
}

// LookUp resolves a name, or an address for PTR: from memory while it is fresh, else from the
// controller, else, or where that takes long, from memory whatever its age.
func (n *Names) LookUp(ctx context.Context, question string, req *apiv1.ResolveRequest) (Name, error) {
	n.mu.Lock()
	old, have := n.misses[question]
	if !have || !time.Now().Before(old.Until) {
		old, have = n.known[question]
	}
	n.mu.Unlock()
	if have && time.Now().Before(old.Until) {
		return old, missing(old)
	}
	fresh, err := n.asked(question, req).wait(ctx, have)
	if err == nil || errors.Is(err, ErrUnknown) {
		return fresh, err
	}
	if have {
		old.TTL = staleTTL
		return old, nil
	}
	return Name{}, err
}

func missing(a Name) error {
	if a.Missing {
		return ErrUnknown
	}
	return nil
}

// Ask asks the controller.
func (n *Names) Ask(ctx context.Context, req *apiv1.ResolveRequest) (Name, error) {
	client := n.cfg.Controller()
	if client == nil {
		return Name{}, errors.New("no way to the controller yet")
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	resp, err := apiv1connect.NewAgentClient(client, api.BaseURL()).Resolve(ctx, connect.NewRequest(req))
	switch connect.CodeOf(err) {
	case connect.CodeNotFound, connect.CodeInvalidArgument:
		if err != nil {
			return Name{Missing: true, Until: time.Now().Add(negativeTTL)}, ErrUnknown
		}
	}
	if err != nil {
		return Name{}, err
	}
	addr, err := netip.ParseAddr(resp.Msg.Address)
	if err != nil {
		return Name{}, err
	}
	if p := resp.Msg.Policy; p != nil {
		n.cfg.Learn(ctx, addr, p)
	}
	ttl := resp.Msg.TtlSeconds
	if ttl == 0 {
		ttl = defaultTTL
	}
	if resp.Msg.Sid == "" { // a host: its name is apart from the services'
		resp.Msg.Name += ".host"
	}
	return Name{Name: resp.Msg.Name, Address: addr, TTL: ttl, Until: time.Now().Add(time.Duration(ttl) * time.Second)}, nil
}

// keep remembers an answer, on disk too: a restart while the controller is away still knows it.
func (n *Names) keep(question string, a Name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, had := n.known[question]
	if a.Missing {
		makeRoom(n.misses, question, maxMisses)
		n.misses[question] = a
		delete(n.known, question)
		if !had {
			return
		}
	} else {
		makeRoom(n.known, question, maxNames)
		n.known[question] = a
		delete(n.misses, question)
		if had && old.Address == a.Address && old.Name == a.Name {
			return
		}
	}
	if n.saved == nil {
		n.saved = time.AfterFunc(100*time.Millisecond, n.save)
	}
}

// makeRoom forgets any one where there are too many: what is needed comes back.
func makeRoom(of map[string]Name, question string, most int) {
	if _, had := of[question]; had || len(of) < most {
		return
	}
	for q := range of {
		delete(of, q)
		return
	}
}

func (n *Names) save() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.saved = nil
	state := Saved{n.domain, map[string]Name{}}
	maps.Copy(state.Names, n.known)
	if err := n.cfg.Save(state); err != nil {
		n.cfg.Log.Warn("a restart will not know names", "error", err)
	}
}

// Of finds the name of an address among the answers that programs of this host got.
func (n *Names) Of(addr netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.known {
		if a.Address == addr && !a.Missing {
			return a.Name
		}
	}
	return ""
}
